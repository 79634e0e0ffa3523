package dev.parley.backend;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;

/** Free loopback ports. */
final class FreePorts {
    private FreePorts() {}

    static int[] of(int count) {
        ServerSocket[] held = new ServerSocket[count];
        int[] ports = new int[count];
        try {
            for (int i = 0; i < count; i++) {
                held[i] = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                ports[i] = held[i].getLocalPort();
            }
            for (ServerSocket socket : held) {
                socket.close();
            }
            return ports;
        } catch (IOException e) {
            throw new BackendUnavailable("no free loopback ports: " + e.getMessage(), e);
        }
    }
}
