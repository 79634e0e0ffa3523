package dev.parley.backend;

import dev.parley.process.Ports;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;

/** The loopback ports of servers that keep a folder. */
final class FreePorts {
    private FreePorts() {}

    /**
     * The ports that a server in this folder had before, so that it comes back in its place; or else new ones, noted in
     * the folder.
     */
    static int[] in(Path folder, int count) {
        Path file = folder.resolve("ports");
        try {
            if (Files.exists(file)) {
                return Arrays.stream(Files.readString(file).strip().split(" "))
                        .mapToInt(Integer::parseInt)
                        .toArray();
            }
            int[] ports = Ports.free(count);
            Files.createDirectories(folder);
            Files.writeString(
                    file, Arrays.stream(ports).mapToObj(Integer::toString).collect(Collectors.joining(" ")));
            return ports;
        } catch (IOException e) {
            throw new BackendUnavailable(folder + " cannot be used: " + e.getMessage(), e);
        }
    }
}
