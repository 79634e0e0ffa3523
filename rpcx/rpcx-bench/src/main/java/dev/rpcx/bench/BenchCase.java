package dev.rpcx.bench;

import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/** Case of the benchmark: what is called, and by how many callers at once. */
enum BenchCase {
    A("A: one blocking caller", 1, Body.HELLO),
    B("B: 64 blocking callers", 64, Body.HELLO),
    C("C: 256 in flight on one connection", 256, Body.HELLO),
    B_1KB("B with 1 kB", 64, Body.KILOBYTE),
    B_100KB("B with 100 kB", 64, Body.HUNDRED_KILOBYTES),
    B_100ROWS("B with 100 records of all types", 64, Body.HUNDRED_ROWS),
    B_1000ROWS("B with 1 000 records", 64, Body.THOUSAND_ROWS);

    /** Content that is sent and must come back. */
    enum Body {
        HELLO,
        KILOBYTE,
        HUNDRED_KILOBYTES,
        HUNDRED_ROWS,
        THOUSAND_ROWS;

        boolean isRows() {
            return this == HUNDRED_ROWS || this == THOUSAND_ROWS;
        }
    }

    final String title;
    final int callers;
    final Body body;

    BenchCase(String title, int callers, Body body) {
        this.title = title;
        this.callers = callers;
        this.body = body;
    }

    boolean isAsynchronous() {
        return this == C;
    }

    /** Returns why the peer cannot be measured in this case; empty if it can be. */
    Optional<String> whyUnfit(Peer peer) {
        if (body.isRows() && !peer.carriesRows()) {
            return Optional.of("carries texts only");
        }
        if (isAsynchronous() && !peer.isAsynchronous()) {
            return Optional.of("one call at a time on a connection");
        }
        return Optional.empty();
    }

    static BenchCase named(String name) {
        return Arrays.stream(values())
                .filter(c -> c.name().equalsIgnoreCase(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("case: " + name + " (expected: one of "
                        + Arrays.stream(values()).map(Enum::name).collect(Collectors.joining(", ")) + ")"));
    }
}
