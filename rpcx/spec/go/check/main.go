// Command check holds a server that publishes the service spec against the page of the wire.
//
//	check HOST PORT         runs all checks and ends with 1 at the first difference
//	check -all HOST PORT    goes on after a difference
//	check -slow HOST PORT   also waits for what takes a server ten seconds
//	check -only TEXT …      runs the checks whose name contains the text
//	check -without NAME …   leaves a check out; may be given more than once
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// patience is how long a check waits for what has to come. It is no expectation of the page's.
var patience = 15 * time.Second

// T is one check under way.
type T struct {
	address string
	place   string // what the check does at the moment
	sent    []byte // what a peer wrote last
	count   int    // values compared
	all     bool   // go on with the next case after a difference
	found   []difference
}

// difference is what a check panics with.
type difference struct {
	place, sent, got, expected string
}

// step names what comes next, for the report of a difference.
func (t *T) step(format string, values ...any) { t.place = fmt.Sprintf(format, values...) }

func (t *T) differ(got, expected string) {
	panic(difference{t.place, fmt.Sprintf("% x (the last packet, of %d bytes)", t.sent[:min(len(t.sent), 120)], len(t.sent)), got, expected})
}

// stop ends a check whose difference has been kept.
type stop struct{}

// same compares a value with what the page says it is.
func same[V comparable](t *T, what string, got, expected V) {
	t.count++
	if got != expected {
		t.differ(fmt.Sprintf("%s: %v", what, got), fmt.Sprint(expected))
	}
}

// holds checks a value that the page gives a range for.
func holds(t *T, what string, got any, expected string, is bool) {
	t.count++
	if !is {
		t.differ(fmt.Sprintf("%s: %v", what, got), expected)
	}
}

// check is one rule of the page and how to see it. The rule is a sentence of the page, without marks, or several in the
// page's order: "..." stands for what is left out between two of them. A table's cells have bars between them. A rule
// of another page than wire.md names that page at its end: "(schema.md)".
type check struct {
	name string
	rule string
	run  func(*T)
}

// one runs a case of a check. A difference ends the check, or only the case if all are asked for.
func (t *T) one(c func()) {
	defer func() {
		if thrown := recover(); thrown != nil {
			d, is := thrown.(difference)
			if !is { // the check is over, or the program is wrong
				panic(thrown)
			}
			t.found = append(t.found, d)
			if !t.all {
				panic(stop{})
			}
		}
	}()
	c()
}

func run(address string, all bool, c check) *T {
	t := &T{address: address, place: "start", all: all}
	func() {
		defer func() {
			if thrown := recover(); thrown != nil && thrown != (stop{}) {
				panic(thrown)
			}
		}()
		t.one(func() { c.run(t) })
	}()
	return t
}

func main() {
	all := flag.Bool("all", false, "go on after a difference")
	slow := flag.Bool("slow", false, "also wait for what takes a server ten seconds")
	without := map[string]bool{}
	flag.Func("without", "leave out the check of this name", func(name string) error {
		without[name] = true
		return nil
	})
	flag.DurationVar(&patience, "patience", patience, "how long to wait for what has to come")
	only := flag.String("only", "", "run only the checks whose name contains this")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: check [-all] [-slow] [-only TEXT] [-without NAME]... [-patience TIME] HOST PORT")
		os.Exit(2)
	}
	address := net.JoinHostPort(flag.Arg(0), flag.Arg(1))
	checks := append(append(append([]check{}, clientChecks...), nativeChecks...), classicChecks...)
	if *slow {
		checks = append(checks, slowChecks...)
	}
	compared, ran, different := 0, 0, 0
	for _, c := range checks {
		if !strings.Contains(c.name, *only) {
			continue
		}
		if without[c.name] {
			fmt.Printf("left out %s\n", c.name)
			continue
		}
		t := run(address, *all, c)
		ran++
		compared += t.count
		if len(t.found) == 0 {
			fmt.Printf("ok   %s (%d)\n", c.name, t.count)
			continue
		}
		different++
		fmt.Printf("DIFFERENT %s\n  rule:       %s\n", c.name, c.rule)
		for _, d := range t.found {
			fmt.Printf("  at:         %s\n    sent:     %s\n    got:      %s\n    expected: %s\n", d.place, d.sent, d.got, d.expected)
		}
		if !*all {
			os.Exit(1)
		}
	}
	if different > 0 {
		fmt.Printf("%d of %d checks differ\n", different, ran)
		os.Exit(1)
	}
	fmt.Printf("ok, %d checks, %d values compared\n", ran, compared)
}
