package dev.rpcx.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;

/** All that can be measured. Peers that need another Netty stand in modules of their own and come by ServiceLoader. */
final class Peers {
    private Peers() {}

    static List<Peer> all() {
        List<Peer> peers = new ArrayList<>(List.of(
                new RawNettyPeer(),
                new GrpcPeer("grpc", false, false),
                new GrpcPeer("grpc-direct", true, false),
                new GrpcPeer("grpc-channel-per-call", false, true),
                new ThriftPeer(),
                new FeignPeer()));
        ServiceLoader.load(Peer.class).forEach(peers::add);
        return peers;
    }

    static Peer named(String name) {
        return all().stream()
                .filter(peer -> peer.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("peer: " + name + " (expected: one of "
                        + String.join(", ", all().stream().map(Peer::name).toList()) + ")"));
    }
}
