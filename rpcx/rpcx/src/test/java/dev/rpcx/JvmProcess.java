package dev.rpcx;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/**
 * Runs a main class of the tests in a process of its own, on this class path. The first line of its output ends with
 * its port, if it has one. The process ends when its input ends.
 */
public final class JvmProcess implements AutoCloseable {
    private final Process process;
    private final BufferedReader out;

    private JvmProcess(Process process) {
        this.process = process;
        this.out = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    public static JvmProcess start(List<String> options, Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(
                List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(List.of("-Xshare:auto", "--enable-native-access=ALL-UNNAMED"));
        // the process chooses sizes by the form of the test, so it needs to know the form that its test runs in
        command.add("-Drpcx.long=" + LongForm.ON);
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return new JvmProcess(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start());
    }

    /** Answers each line of the input with one line, until the input ends. The process itself calls this method. */
    public static void answer(UnaryOperator<String> answers) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answers.apply(line));
        }
    }

    /** Returns the processor time that the process has used so far. The process itself calls this method. */
    public static long cpuMillis() {
        return ProcessHandle.current()
                .info()
                .totalCpuDuration()
                .map(Duration::toMillis)
                .orElse(0L);
    }

    /** Waits for the next line of output, and returns it. A server prints the first line when it serves. */
    public String greeting() throws IOException {
        String line = out.readLine();
        if (line == null) {
            throw new IOException("the process ended before it served");
        }
        return line;
    }

    /** Waits until the process serves, and returns its port. */
    public int port() throws IOException {
        String line = greeting();
        return Integer.parseInt(line.substring(line.lastIndexOf(' ') + 1));
    }

    /** Sends one line to the process, and returns the line that it answers. */
    public String ask(String line) throws IOException {
        process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
        process.getOutputStream().flush();
        String answer = out.readLine();
        if (answer == null) {
            throw new IOException("the process ended, asked for: " + line);
        }
        return answer;
    }

    /** Ends the process like {@code kill -9}: no handler runs, and no buffer is flushed. */
    public void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    /** Returns the highest number of resident bytes so far. This works only on Linux. */
    public long highestResidentBytes() throws IOException {
        return Files.readAllLines(Path.of("/proc", Long.toString(process.pid()), "status")).stream()
                .filter(line -> line.startsWith("VmHWM:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * 1024)
                .findFirst()
                .orElseThrow();
    }

    @Override
    public void close() throws IOException {
        process.getOutputStream().close();
        try {
            if (!process.waitFor(5, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
