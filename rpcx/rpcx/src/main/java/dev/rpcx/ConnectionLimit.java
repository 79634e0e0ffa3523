package dev.rpcx;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** How many connections a server has, of all clients and of each address. */
final class ConnectionLimit {
    private final int most;
    private final int mostOfOne;
    private final AtomicInteger all = new AtomicInteger();
    private final Map<InetAddress, Integer> byAddress = new ConcurrentHashMap<>();

    ConnectionLimit(int most, int mostOfOne) {
        this.most = most;
        this.mostOfOne = mostOfOne;
    }

    /** @return false if there is one too many; {@link #closed} is then not called */
    boolean opened(SocketAddress remote) {
        if (all.incrementAndGet() > most) {
            all.decrementAndGet();
            return false;
        }
        if (remote instanceof InetSocketAddress peer && peer.getAddress() != null) {
            int so = byAddress.merge(peer.getAddress(), 1, Integer::sum);
            if (so > mostOfOne) {
                closed(remote);
                return false;
            }
        }
        return true;
    }

    void closed(SocketAddress remote) {
        all.decrementAndGet();
        if (remote instanceof InetSocketAddress peer && peer.getAddress() != null) {
            byAddress.computeIfPresent(peer.getAddress(), (address, so) -> so > 1 ? so - 1 : null);
        }
    }
}
