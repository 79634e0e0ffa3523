package dev.parley.transport.contract;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Threads and sockets that were not there at the start. */
final class Leftovers {
    /** The JDK's own, started on first use and kept: carriers and pollers of virtual threads, timers of futures, the reaper of processes. */
    private static final Pattern OF_THE_JDK = Pattern.compile(
            "ForkJoinPool.*|.*Poller.*|VirtualThread-.*|CompletableFutureDelayScheduler.*|process reaper.*|Attach Listener|awaitility.*"
                    + "|junit.*|Common-Cleaner|Cleaner-.*|InnocuousThread.*|Keep-Alive-Timer");

    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

    private final Set<Thread> threadsAtStart = Thread.getAllStackTraces().keySet();
    private final Set<String> socketsAtStart = sockets();

    /** Names of threads and sockets, empty if nothing is left over. */
    List<String> found() {
        Stream<String> threads = Thread.getAllStackTraces().keySet().stream()
                .filter(t -> t.isAlive() && !threadsAtStart.contains(t))
                .map(Thread::getName)
                .filter(name -> !OF_THE_JDK.matcher(name).matches())
                .map(name -> "thread " + name);
        Stream<String> sockets = sockets().stream().filter(s -> !socketsAtStart.contains(s));
        return Stream.concat(threads, sockets).sorted().toList();
    }

    /** TCP sockets of this process by inode, with their addresses; none where there is no {@code /proc}. */
    private static Set<String> sockets() {
        if (!Files.isDirectory(DESCRIPTORS)) {
            return Set.of();
        }
        Set<String> inodes = new TreeSet<>();
        try (Stream<Path> descriptors = Files.list(DESCRIPTORS)) {
            descriptors.forEach(descriptor -> {
                String target = target(descriptor);
                if (target.startsWith("socket:[")) {
                    inodes.add(target.substring("socket:[".length(), target.length() - 1));
                }
            });
            return Stream.of("/proc/self/net/tcp", "/proc/self/net/tcp6")
                    .map(Path::of)
                    .filter(Files::exists)
                    .flatMap(Leftovers::lines)
                    .map(line -> line.strip().split("\\s+"))
                    .filter(columns -> columns.length > 9 && inodes.contains(columns[9]))
                    .map(columns -> "socket " + columns[9] + " from " + columns[1] + " to " + columns[2])
                    .collect(Collectors.toUnmodifiableSet());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Stream<String> lines(Path table) {
        try {
            return Files.readAllLines(table).stream();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Empty for a descriptor closed since it was listed. */
    private static String target(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString();
        } catch (NoSuchFileException e) {
            return "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
