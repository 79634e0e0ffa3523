package dev.parley.process;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;

/**
 * Loopback ports for processes that boot. They are below the range from which systems take the ports of outgoing
 * connections, so that no client of one that is under way is in the place of one that boots later.
 */
public final class Ports {
    /** IANA's dynamic range begins at 49152, Linux's at 32768. Source: ip(7), ip_local_port_range. */
    private static final int FIRST = 20_000;

    private static final int LAST = 32_000;
    private static final int TRIES = 1_000;

    private Ports() {}

    /**
     * One that was free a moment ago.
     *
     * @throws ProcessException if none was found
     */
    public static int free() {
        for (int i = 0; i < TRIES; i++) {
            int port = ThreadLocalRandom.current().nextInt(FIRST, LAST);
            if (isFree(port)) {
                return port;
            }
        }
        throw new ProcessException(
                "no free loopback port between " + FIRST + " and " + LAST + " in " + TRIES + " tries");
    }

    /** So many that are not the same. */
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
}
