package dev.parley.service;

import com.sun.management.ThreadMXBean;
import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * The process of a service: {@code ServiceMain key=value …}, or {@code ServiceMain describe}.
 *
 * <p>It prints {@code listening health=PORT} once it serves. Then it obeys its standard input:
 * {@code hops-reset WINDOW}; {@code hops}, answered by a line {@code hop FROM>TO HISTOGRAM} for each neighbour and by
 * {@code hops-end}; {@code served}, answered by {@code served BEGUN ANSWERED ALLOCATED}: the requests that reached its
 * work since it began, those of them that the work answered, and the bytes of heap that its threads allocated. When the
 * input ends, the process that started it is gone, and it ends too. Exit codes: 0 told to end, 1 bad arguments or a port
 * that is taken.
 */
public final class ServiceMain {
    private ServiceMain() {}

    public static void main(String[] args) throws IOException {
        // a program reads the answers, so what libraries print goes to standard error
        PrintStream answers = System.out;
        System.setOut(System.err);
        if (args.length == 1 && args[0].equals("describe")) {
            Describe.to(answers);
            return;
        }
        int exitCode = 0;
        try {
            serve(ServiceSettings.parse(args), answers);
        } catch (BadInput | CallException e) {
            System.err.println("service: " + e.getMessage());
            exitCode = 1;
        }
        // a technology may leave threads that are not daemons
        System.exit(exitCode);
    }

    private static void serve(ServiceSettings settings, PrintStream answers) throws IOException {
        Microservice service = settings.role()
                .map(role -> new Microservice(settings.name(), role))
                .orElse(null);
        try (service;
                HealthServer health = new HealthServer(
                        settings.healthPort(), settings.name(), () -> MetricsText.of(service), ServiceMain::stop)) {
            answers.println("listening health=" + health.port());
            obey(settings.name(), service, answers);
        }
    }

    private static void stop() {
        // the command loop waits in a read that cannot be interrupted, so the end comes from a thread of its own
        Thread.ofPlatform().name("shutdown").start(() -> System.exit(0));
    }

    private static void obey(String name, @Nullable Microservice service, PrintStream answers) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            String[] words = command.split(" ", 2);
            switch (words[0]) {
                case "hops-reset" -> {
                    if (service != null) {
                        String window = words.length > 1 ? words[1] : "";
                        service.neighbours().values().forEach(neighbour -> neighbour.reset(window));
                    }
                }
                case "hops" -> {
                    if (service != null) {
                        service.neighbours()
                                .forEach((peer, neighbour) -> answers.println(
                                        "hop " + name + ">" + peer + " " + base64(neighbour.sinceReset())));
                    }
                    answers.println("hops-end");
                }
                case "served" -> {
                    // in this order, or a request between the two readings would be answered and not begun
                    long answered = service == null ? 0 : service.answered();
                    long begun = service == null ? 0 : service.requests();
                    answers.println("served " + begun + " " + answered + " " + allocatedBytes());
                }
                default ->
                    System.err.println(
                            "service: unknown command " + command + " (expected: hops-reset, hops or served)");
            }
        }
    }

    /**
     * Heap bytes that all threads have allocated since the process began, without the thread that obeys the lab, whose
     * answers are no part of a request.
     */
    private static long allocatedBytes() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        return threads.getTotalThreadAllocatedBytes() - threads.getCurrentThreadAllocatedBytes();
    }

    private static String base64(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(java.util.Arrays.copyOf(buffer.array(), length));
    }
}
