package dev.parley.backend;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * RabbitMQ: the {@code rabbitmq-server} of the PATH, or else Debian's packages unpacked below the user's cache folder.
 * The server, its Erlang machine and epmd run as one process group under a {@link Warden}.
 */
final class RabbitMqBackend implements Backend {
    private static final Duration TO_START = Duration.ofSeconds(90);
    private static final int TO_CONNECT_MS = 10_000;

    @Override
    public String name() {
        return "rabbitmq";
    }

    @Override
    public Running start(Path folder, Consumer<String> told) throws InterruptedException {
        int[] ports = FreePorts.in(folder, 3);
        return start(folder, ports[0], ports[1], ports[2], told);
    }

    /** Starts a broker on given ports with what is in the folder, so that a broker can come back. */
    Running start(Path folder, int port, int distributionPort, int epmdPort, Consumer<String> told)
            throws InterruptedException {
        RabbitMqInstallation installation = RabbitMqInstallation.find(told);
        Path own = folder.toAbsolutePath();
        try {
            Files.createDirectories(own);
            Files.writeString(own.resolve("enabled_plugins"), "[].\n");
            Files.writeString(own.resolve("rabbitmq.conf"), """
                    listeners.tcp.default = 127.0.0.1:%d
                    loopback_users.guest = true
                    log.console = false
                    """.formatted(port));
        } catch (IOException e) {
            throw new BackendUnavailable("rabbitmq: " + own + " cannot be written: " + e.getMessage(), e);
        }
        told.accept("starting RabbitMQ " + installation.version());
        Map<String, String> environment = new HashMap<>(installation.environment());
        environment.put("HOME", own.toString()); // its cookie stays with it
        environment.put("ERL_EPMD_PORT", Integer.toString(epmdPort));
        environment.put("ERL_EPMD_ADDRESS", "127.0.0.1");
        environment.put("RABBITMQ_NODENAME", "parley" + port + "@localhost");
        environment.put("RABBITMQ_DIST_PORT", Integer.toString(distributionPort));
        environment.put("RABBITMQ_CONFIG_FILE", own.resolve("rabbitmq.conf").toString());
        environment.put("RABBITMQ_CONF_ENV_FILE", own.resolve("none").toString());
        environment.put(
                "RABBITMQ_ENABLED_PLUGINS_FILE", own.resolve("enabled_plugins").toString());
        environment.put("RABBITMQ_MNESIA_BASE", own.resolve("data").toString());
        environment.put("RABBITMQ_LOG_BASE", own.resolve("log").toString());
        environment.put("RABBITMQ_PID_FILE", own.resolve("pid").toString());
        environment.put("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}");
        Warden warden = Warden.start(
                name(),
                own,
                // its data is of no use after a run, and an orderly end takes it seconds
                Warden.End.KILL,
                List.of(
                        "sh",
                        Warden.resource(name(), "rabbitmq.sh", own).toString(),
                        installation.epmd(),
                        installation.server()),
                environment);
        warden.await(() -> roundTrip("127.0.0.1", port), TO_START);
        return warden.running(port, installation.version());
    }

    /**
     * A broker that runs already, used as its user {@code guest}. The run's queues are deleted with their last
     * consumer.
     */
    Running external(String host, int port) {
        try {
            return new External(host, port, roundTrip(host, port));
        } catch (IOException | TimeoutException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new BackendUnavailable(
                    "no RabbitMQ broker that can be used: " + cause + " (expected: one that takes the user guest)", e);
        }
    }

    private record External(String host, int port, String version) implements Running {
        @Override
        public List<ProcessHandle> processes() {
            return List.of();
        }

        @Override
        public boolean isAlive() {
            return true;
        }

        @Override
        public void close() {}
    }

    /** Makes a round trip, and returns the version that the broker tells. */
    private static String roundTrip(String host, int port) throws IOException, TimeoutException {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(host);
        factory.setConnectionTimeout(TO_CONNECT_MS);
        factory.setHandshakeTimeout(TO_CONNECT_MS);
        factory.setPort(port);
        factory.setAutomaticRecoveryEnabled(false);
        try (Connection connection = factory.newConnection("parley-probe");
                Channel channel = connection.createChannel()) {
            String queue = channel.queueDeclare().getQueue();
            channel.basicPublish("", queue, null, "probe".getBytes(StandardCharsets.UTF_8));
            while (channel.basicGet(queue, true) == null) {
                Thread.onSpinWait();
            }
            return String.valueOf(connection.getServerProperties().get("version"));
        }
    }
}
