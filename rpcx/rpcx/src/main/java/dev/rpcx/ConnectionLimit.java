package dev.rpcx;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** How many connections a server has, of all clients and of each address; and the bytes of unfinished requests on all of them. */
final class ConnectionLimit {
    /** For requests in several frames that have not arrived whole, of all connections together. */
    private static final long MAX_PARTIAL_BYTES =
            Math.max(64L << 20, Runtime.getRuntime().maxMemory() / 8);

    private final int most;
    private final int mostOfOne;
    private final AtomicInteger all = new AtomicInteger();
    private final Map<InetAddress, Integer> byAddress = new ConcurrentHashMap<>();
    private final AtomicLong partialBytes = new AtomicLong();

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

    /** @return false if the server holds too much already */
    boolean hold(int bytes) {
        if (partialBytes.addAndGet(bytes) <= MAX_PARTIAL_BYTES) {
            return true;
        }
        partialBytes.addAndGet(-bytes);
        return false;
    }

    void release(long bytes) {
        partialBytes.addAndGet(-bytes);
    }
}
