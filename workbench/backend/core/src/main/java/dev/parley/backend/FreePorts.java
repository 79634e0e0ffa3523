package dev.parley.backend;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Free loopback ports. */
final class FreePorts {
    private FreePorts() {}

    /** The ports that a server in this folder had before, so that it comes back in its place; or else new ones, noted in the folder. */
    static int[] in(Path folder, int count) {
        Path file = folder.resolve("ports");
        try {
            if (Files.exists(file)) {
                return Arrays.stream(Files.readString(file).strip().split(" "))
                        .mapToInt(Integer::parseInt)
                        .toArray();
            }
            int[] ports = of(count);
            Files.createDirectories(folder);
            Files.writeString(
                    file, Arrays.stream(ports).mapToObj(Integer::toString).collect(Collectors.joining(" ")));
            return ports;
        } catch (IOException e) {
            throw new BackendUnavailable(folder + " cannot be used: " + e.getMessage(), e);
        }
    }

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
