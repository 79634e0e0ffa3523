package dev.parley.load;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * A service as a process of its own, with faults planted: of ten requests one gets a wrong reply, one none, one its reply twice, one its reply
 * after the limit, and six the right one. A request is a number; its right reply is the number and {@link #answer} of it.
 */
final class PlantedService {
    static final long LATE_MS = 300;

    private PlantedService() {}

    static long answer(long request) {
        return request * 31 + 7;
    }

    /** Prints its port, serves one connection, and ends with its standard input. */
    public static void main(String[] args) throws IOException {
        Thread.ofPlatform().daemon().start(PlantedService::endWithInput);
        try (ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                ScheduledExecutorService later = Executors.newScheduledThreadPool(1)) {
            System.out.println(listening.getLocalPort());
            try (Socket client = listening.accept();
                    DataInputStream in = new DataInputStream(client.getInputStream());
                    DataOutputStream out = new DataOutputStream(client.getOutputStream())) {
                client.setTcpNoDelay(true);
                while (true) {
                    serve(in.readLong(), out, later);
                }
            }
        } catch (EOFException clientIsGone) {
            System.exit(0);
        }
    }

    private static void serve(long request, DataOutputStream out, ScheduledExecutorService later) {
        switch ((int) (request % 10)) {
            case 0 -> reply(request, answer(request) + 1, out);
            case 1 -> {}
            case 2 -> {
                reply(request, answer(request), out);
                reply(request, answer(request), out);
            }
            case 3 -> later.schedule(() -> reply(request, answer(request), out), LATE_MS, TimeUnit.MILLISECONDS);
            default -> reply(request, answer(request), out);
        }
    }

    private static void reply(long request, long answer, DataOutputStream out) {
        synchronized (out) {
            try {
                out.writeLong(request);
                out.writeLong(answer);
            } catch (IOException clientIsGone) {
                System.exit(0);
            }
        }
    }

    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) {
                // nothing is expected
            }
        } catch (IOException e) {
            System.err.println(e);
        }
        System.exit(0);
    }
}
