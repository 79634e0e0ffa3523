package dev.parley.process;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Loopback ports for processes that boot. They are below the range from which systems take the ports of outgoing
 * connections, so that no outgoing connection of a running process has the port of a process that boots later.
 *
 * <p>A broker takes seconds from its start until it listens, and until then its port looks free. So a port that is
 * given out is reserved, by a lock on one byte of a file that all processes of this user share: none of them gives it
 * out as well, until {@value #MAX_RESERVED} others have been given out here or this process has ended.
 */
public final class Ports {
    /** IANA's dynamic range begins at 49152, Linux's at 32768. Source: ip(7), ip_local_port_range. */
    private static final int FIRST = 20_000;

    private static final int COUNT = 12_000;
    private static final int MAX_RESERVED = 500;

    private static final @Nullable FileChannel RESERVATIONS = reservations();

    /** The locks of reserved ports, the oldest first. Guarded by itself. */
    private static final Queue<FileLock> RESERVED = new ArrayDeque<>();

    private Ports() {}

    /** A file in the folder for temporary files; null where that cannot be written, and nothing is reserved then. */
    private static @Nullable FileChannel reservations() {
        Path file = Path.of(System.getProperty("java.io.tmpdir"), "parley-ports-" + System.getProperty("user.name"));
        try {
            return FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        } catch (IOException e) {
            return null;
        }
    }

    /**
     * A port that was free a moment ago, and that nobody else who asks here is given.
     *
     * @throws ProcessException if no port is free
     */
    public static int free() {
        int first = ThreadLocalRandom.current().nextInt(COUNT);
        for (int i = 0; i < COUNT; i++) {
            int port = FIRST + (first + i) % COUNT;
            if (isFree(port) && reserve(port)) {
                return port;
            }
        }
        throw new ProcessException("no free loopback port between " + FIRST + " and " + (FIRST + COUNT));
    }

    /** So many different ports. */
    public static int[] free(int count) {
        return IntStream.generate(Ports::free).distinct().limit(count).toArray();
    }

    public static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return socket.isBound();
        } catch (IOException taken) {
            return false;
        }
    }

    private static boolean reserve(int port) {
        if (RESERVATIONS == null) {
            return true;
        }
        synchronized (RESERVED) {
            try {
                FileLock reserved = RESERVATIONS.tryLock(port, 1, false);
                if (reserved == null) {
                    return false;
                }
                RESERVED.add(reserved);
                if (RESERVED.size() > MAX_RESERVED) {
                    RESERVED.remove().release();
                }
                return true;
            } catch (OverlappingFileLockException byThisProcess) {
                return false;
            } catch (IOException unlockable) {
                // a file system without locks
                return true;
            }
        }
    }
}
