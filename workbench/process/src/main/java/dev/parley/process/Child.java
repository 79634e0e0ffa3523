package dev.parley.process;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * A child process that ends with its standard input: it reads commands from a pipe, and ends when the pipe is closed.
 * The lines that it prints are queued; what it writes to standard error goes to a file.
 */
public final class Child implements AutoCloseable {
    private static final Duration GRACE = Duration.ofSeconds(3);
    /** Marks the end of the output in the queue: no process of ours prints it. */
    private static final String END = "\u0000end";

    private final String name;
    private final Process process;
    private final Path log;
    private final long startedNs;
    private final PrintWriter in;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    private Child(String name, Process process, Path log, long startedNs) {
        this.name = name;
        this.process = process;
        this.log = log;
        this.startedNs = startedNs;
        this.in = new PrintWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8), true);
        Thread.ofVirtual().name("output-of-" + name).start(this::read);
    }

    /**
     * Starts a JVM of the same JDK as this one.
     *
     * @param jvmFlags before the class path
     * @param log what it says on standard error is appended here
     */
    public static Child java(
            String name, List<String> jvmFlags, String classPath, String main, List<String> args, Path log) {
        return java(name, List.of(), jvmFlags, classPath, main, args, log);
    }

    /** @param prefix of the command, such as one that enters a control group; it must become the JVM, not start it */
    public static Child java(
            String name,
            List<String> prefix,
            List<String> jvmFlags,
            String classPath,
            String main,
            List<String> args,
            Path log) {
        List<String> command = new ArrayList<>(prefix);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(jvmFlags);
        command.addAll(List.of("-cp", classPath, main));
        command.addAll(args);
        return start(name, command, Map.of(), log);
    }

    /** Starts any command that ends with its standard input, with {@code environment} added to this process's own. */
    public static Child start(String name, List<String> command, Map<String, String> environment, Path log) {
        try {
            ProcessBuilder builder =
                    new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()));
            builder.environment().putAll(environment);
            long startedNs = System.nanoTime();
            Child child = new Child(name, builder.start(), log, startedNs);
            Children.add(child);
            return child;
        } catch (IOException e) {
            throw new ProcessException("could not start " + name + ": " + e.getMessage(), e);
        }
    }

    private void read() {
        try (BufferedReader out =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                lines.add(line);
            }
        } catch (IOException ended) {
            // the end of the process is what the reader of the queue is told
        }
        lines.add(END);
    }

    public void tell(String line) {
        in.println(line);
    }

    /** The next line it prints; empty when none came in time. */
    public Optional<String> line(Duration within) throws InterruptedException {
        String line = lines.poll(within.toNanos(), TimeUnit.NANOSECONDS);
        if (line == null) {
            return Optional.empty();
        }
        if (line.equals(END)) {
            lines.add(END);
            throw new ProcessException(howItEnded());
        }
        return Optional.of(line);
    }

    /** One sentence about a process that is gone: its exit code, its last words, and its log. */
    public String howItEnded() throws InterruptedException {
        String exit = process.waitFor(1, TimeUnit.SECONDS)
                ? "exit code " + process.exitValue()
                        + (process.exitValue() > 128 ? " (killed by signal " + (process.exitValue() - 128) + ")" : "")
                : "its output closed";
        String last = lastWords();
        return name + " ended by itself: " + exit + (last.isEmpty() ? "" : "; its last words: " + last) + "; log: "
                + log;
    }

    private String lastWords() {
        try {
            List<String> text = Files.readAllLines(log).stream()
                    .filter(line -> !line.isBlank() && !line.startsWith("WARNING"))
                    .toList();
            // frames of a stack trace are left out, so that the line that names the fault is the last one
            return text.stream()
                    .filter(line -> !line.startsWith("\tat "))
                    .reduce((first, second) -> second)
                    .orElse("");
        } catch (IOException unreadable) {
            return "";
        }
    }

    public String name() {
        return name;
    }

    public ProcessHandle handle() {
        return process.toHandle();
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /** Just before the process was started, on this JVM's clock. */
    public long startedNs() {
        return startedNs;
    }

    /** Ends its input without waiting, so that several can end at once; {@link #close} then waits. */
    public void endInput() {
        in.close();
    }

    /** Ends its input and waits; a process that does not end by itself is killed. */
    @Override
    public void close() {
        endInput();
        try {
            if (!process.waitFor(GRACE)) {
                kill();
                process.waitFor();
            }
        } catch (InterruptedException e) {
            kill();
            Thread.currentThread().interrupt();
        }
        Children.remove(this);
    }

    public void kill() {
        process.destroyForcibly();
    }
}
