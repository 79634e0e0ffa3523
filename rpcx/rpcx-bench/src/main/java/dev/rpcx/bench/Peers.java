package dev.rpcx.bench;

import java.util.List;
import java.util.ServiceLoader;

/**
 * Names of all peers that can be measured, and the peers themselves. RSocket needs a Netty of its own, and so has a
 * module and a class path of its own: here only its name is known, and in its own processes it is found by
 * ServiceLoader.
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

    /** Stands for a peer that the parent never runs itself, with what the parent needs to know of it. */
    private record RemotePeer(String name) implements Peer {
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
            case "rsocket" -> new RemotePeer(name);
            case "thrift" -> new ThriftPeer();
            case "openfeign" -> new FeignPeer();
            default ->
                throw new IllegalArgumentException(
                        "peer: " + name + " (expected: one of " + String.join(", ", NAMES) + ")");
        };
    }

    /**
     * Returns the class path of a peer's processes: that of this process, unless the system property
     * {@code classpath.PEER} names another.
     */
    static String classPath(String name) {
        return System.getProperty("classpath." + name, System.getProperty("java.class.path"));
    }
}
