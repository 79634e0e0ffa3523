package dev.rpcx;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** Several servers of one service in this process. Each counts the calls that it has executed. */
public final class Instances implements AutoCloseable {
    @RPCXServer("counted")
    public static final class Counted {
        public final int instance;
        public volatile long parkMillis;
        public volatile boolean isSick;
        public final AtomicLong executed = new AtomicLong();

        public Counted(int instance) {
            this.instance = instance;
        }

        @Method
        public int who(String key) {
            executed.incrementAndGet();
            return instance;
        }

        /** Parks for as long as {@link #parkMillis} says, or fails at once where {@link #isSick}. */
        @Method
        public int slow(String key) {
            executed.incrementAndGet();
            if (isSick) {
                throw new RPCXException(RPCXException.Code.OVERLOADED, "sick");
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(parkMillis));
            return instance;
        }

        @Method
        public int fail(String key) {
            executed.incrementAndGet();
            throw new RPCXException(RPCXException.Code.OVERLOADED, "sick");
        }
    }

    @RPCXClient(remoteServerName = "counted")
    public interface Who {
        int who(@RouteBy String key);

        @Method("who")
        CompletableFuture<Integer> whoLater(@RouteBy String key);

        int slow(String key);

        @Method(value = "slow", idempotent = true)
        int slowTwice(String key);

        @Method(value = "slow", idempotent = true)
        CompletableFuture<Integer> slowTwiceLater(String key);

        @Method(value = "slow", idempotent = true, hedgeMillis = 30)
        int slowHedged(String key);

        @Method(value = "slow", idempotent = true, hedgeMillis = 30)
        CompletableFuture<Integer> slowHedgedLater(String key);

        int fail(String key);

        @Method(value = "fail", idempotent = true)
        int failTwice(String key);
    }

    public final List<Counted> services = new ArrayList<>();
    private final List<Server> servers = new CopyOnWriteArrayList<>();

    public Instances(int count) {
        for (int i = 0; i < count; i++) {
            services.add(new Counted(i));
            servers.add(start(i, 0));
        }
    }

    private Server start(int instance, int port) {
        return Server.builder(RegistryServer.registry(services.get(instance)))
                .host("127.0.0.1")
                .port(port)
                .build()
                .start();
    }

    public Endpoint endpoint(int instance) {
        return new Endpoint("127.0.0.1", servers.get(instance).port());
    }

    public Endpoint[] endpoints() {
        return java.util.stream.IntStream.range(0, servers.size())
                .mapToObj(this::endpoint)
                .toArray(Endpoint[]::new);
    }

    /** Stops an instance in peace, and starts it again on the same port. */
    public void restart(int instance) {
        int port = servers.get(instance).port();
        servers.get(instance).stop();
        servers.set(instance, start(instance, port));
    }

    public void stop(int instance) {
        servers.get(instance).stop(Duration.ofMillis(100));
    }

    public long executed() {
        return services.stream().mapToLong(s -> s.executed.get()).sum();
    }

    @Override
    public void close() {
        servers.forEach(server -> server.stop(Duration.ofMillis(200)));
    }
}
