package dev.parley.backend;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** All backends, by name. Immutable. */
public final class Backends {
    private final Map<String, Backend> byName;

    /** @param home the repository's root, below which the broker's class path stands */
    public Backends(Path home) {
        List<Backend> all = List.of(
                new KafkaBackend(home),
                new RabbitMqBackend(),
                new PostgresBackend(),
                new MySqlBackend(),
                new RedisBackend());
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

    /** One that runs already and is not ours to end: {@code --backend rabbitmq=host:port}. */
    public static Backend external(String name, String host, int port) {
        record External(String host, int port) implements Backend.Running {
            @Override
            public String version() {
                return "as it runs at " + host + ":" + port;
            }

            @Override
            public List<ProcessHandle> processes() {
                return List.of();
            }

            @Override
            public void close() {}
        }
        return new Backend() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public Running start(Path folder, Consumer<String> told) {
                return new External(host, port);
            }
        };
    }
}
