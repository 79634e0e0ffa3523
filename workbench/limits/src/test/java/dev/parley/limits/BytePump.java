package dev.parley.limits;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/**
 * A program for a host: {@code receive ADDRESS} counts the bytes that come for a while; {@code send ADDRESS PORT} sends
 * as many as it can.
 */
final class BytePump {
    private static final int WARM_UP_MS = 1_000;
    private static final int COUNTED_MS = 3_000;

    private BytePump() {}

    public static void main(String[] args) throws IOException {
        if (args[0].equals("receive")) {
            receive(args[1]);
        } else {
            send(args[1], Integer.parseInt(args[2]));
        }
    }

    /** Prints its port, then bytes and nanoseconds between the first and the last of the counted reads. */
    private static void receive(String address) throws IOException {
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getByName(address))) {
            System.out.println(listener.getLocalPort());
            try (Socket socket = listener.accept()) {
                InputStream in = socket.getInputStream();
                byte[] buffer = new byte[65_536];
                long openedNs = System.nanoTime();
                while (System.nanoTime() - openedNs < WARM_UP_MS * 1_000_000L) {
                    in.read(buffer);
                }
                long beganNs = System.nanoTime();
                long bytes = 0;
                while (System.nanoTime() - beganNs < COUNTED_MS * 1_000_000L) {
                    bytes += in.read(buffer);
                }
                System.out.println(bytes + " " + (System.nanoTime() - beganNs));
            }
        }
    }

    private static void send(String address, int port) throws IOException {
        try (Socket socket = new Socket(address, port)) {
            byte[] buffer = new byte[65_536];
            while (true) {
                socket.getOutputStream().write(buffer);
            }
        } catch (IOException receiverHasEnough) {
            System.out.println("done");
        }
    }
}
