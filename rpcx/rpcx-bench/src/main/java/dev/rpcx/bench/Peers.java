package dev.rpcx.bench;

import java.util.List;
import java.util.ServiceLoader;

/**
 * All that can be measured, by name. RSocket wants a Netty of its own and so stands in a module and on a class path of its own: here it is
 * only known by name, in its own processes it comes by ServiceLoader.
 */
final class Peers {
    static final List<String> NAMES = List.of(
            "raw-netty",
            "rpcx",
            "rpcx-inline",
            "rpcx-pool",
            "grpc",
            "grpc-direct",
            "grpc-channel-per-call",
            "rsocket",
            "thrift",
            "openfeign");

    private Peers() {}

    /** What the parent needs to know of a peer that it never runs itself. */
    private record Elsewhere(String name) implements Peer {
        @Override
        public AutoCloseable serve(int port) {
            throw new IllegalStateException(name + " is not on this class path");
        }

        @Override
        public Caller connect(int port) {
            throw new IllegalStateException(name + " is not on this class path");
        }
    }

    static Peer named(String name) {
        for (Peer peer : ServiceLoader.load(Peer.class)) {
            if (peer.name().equals(name)) {
                return peer;
            }
        }
        return switch (name) {
            case "raw-netty" -> new RawNettyPeer();
            case "rpcx", "rpcx-inline", "rpcx-pool" -> RpcxPeer.named(name);
            case "grpc" -> new GrpcPeer(name, false, false);
            case "grpc-direct" -> new GrpcPeer(name, true, false);
            case "grpc-channel-per-call" -> new GrpcPeer(name, false, true);
            case "rsocket" -> new Elsewhere(name);
            case "thrift" -> new ThriftPeer();
            case "openfeign" -> new FeignPeer();
            default ->
                throw new IllegalArgumentException(
                        "peer: " + name + " (expected: one of " + String.join(", ", NAMES) + ")");
        };
    }

    /** The class path of a peer's processes: that of this one, unless the system property {@code classpath.PEER} names another. */
    static String classPath(String name) {
        return System.getProperty("classpath." + name, System.getProperty("java.class.path"));
    }
}
