package dev.rpcx.zookeeper;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.apache.zookeeper.server.ZooKeeperServerMain;
import org.awaitility.Awaitility;

/** The real ZooKeeper as a process of its own, which can be killed and started again on the same data. */
final class ZooKeeperProcess implements AutoCloseable {
    private final Path configuration;
    private final Path log;
    private final int port;
    private Process process;

    ZooKeeperProcess(Path folder) throws IOException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        configuration = folder.resolve("zoo.cfg");
        log = folder.resolve("log");
        Files.writeString(
                configuration,
                String.join(
                        "\n",
                        "dataDir=" + folder.resolve("data"),
                        "clientPort=" + port,
                        "clientPortAddress=127.0.0.1",
                        "tickTime=500",
                        "admin.enableServer=false",
                        ""));
        start();
    }

    String servers() {
        return "127.0.0.1:" + port;
    }

    void start() throws IOException {
        process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-Xmx64m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        ZooKeeperServerMain.class.getName(),
                        configuration.toString()))
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        Awaitility.await().atMost(Duration.ofSeconds(30)).until(() -> {
            if (!process.isAlive()) {
                throw new IOException("ZooKeeper ended: " + Files.readString(log));
            }
            try (Socket socket = new Socket("127.0.0.1", port)) {
                return socket.isConnected();
            } catch (IOException notYet) {
                return false;
            }
        });
    }

    /** Kills the process, as {@code kill -9} does. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly().onExit().join();
    }
}
