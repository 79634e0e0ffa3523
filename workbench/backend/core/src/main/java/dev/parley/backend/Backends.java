package dev.parley.backend;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** All backends, by name. Immutable. */
public final class Backends {
    /** Backends that pass messages on, and may run elsewhere. */
    public static final List<String> BROKERS = List.of("rabbitmq", "kafka");
    /** Backends in which works keep their data, and which may run elsewhere. */
    public static final List<String> DATABASES = List.of("postgres", "mysql", "redis");

    private static final int TO_CONNECT_MS = 5_000;

    private final Map<String, Backend> byName;

    /** @param home the repository's root, below which the broker's class path stands */
    public Backends(Path home) {
        List<Backend> all = List.of(
                new KafkaBackend(home),
                new RabbitMqBackend(),
                new PostgresBackend(),
                new MySqlBackend(),
                new RedisBackend(),
                new PrometheusBackend());
        byName = all.stream().collect(java.util.stream.Collectors.toUnmodifiableMap(Backend::name, b -> b));
    }

    public Backend named(String name) {
        Backend backend = byName.get(name);
        if (backend == null) {
            throw new IllegalArgumentException("backend: " + name + " (expected: one of "
                    + byName.keySet().stream().sorted().toList() + ")");
        }
        return backend;
    }

    /**
     * A backend that runs already and does not end with the run: {@code --backend rabbitmq=host:port}. It is proved by
     * a round trip, as those that are started here.
     *
     * @param prefix that the names of the run's queues, topics and groups begin with; nothing of that name is left when
     *     it is closed
     * @param folder for logs; must exist
     * @throws BackendUnavailable in one line, if it does not answer there
     */
    public Backend.Running external(String name, String host, int port, String prefix, Path folder)
            throws InterruptedException {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(host, port), TO_CONNECT_MS);
        } catch (IOException e) {
            throw new BackendUnavailable("nobody listens there (" + e.getMessage() + ")", e);
        }
        return switch (named(name)) {
            case RabbitMqBackend rabbit -> rabbit.external(host, port);
            case KafkaBackend kafka -> kafka.external(host, port, prefix, folder);
            default ->
                throw new BackendUnavailable(
                        name + ": one that runs elsewhere cannot be used (expected: rabbitmq or kafka)");
        };
    }
}
