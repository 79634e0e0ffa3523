package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The network of a {@link SimWorld}, with connections as TCP makes them. The bytes of one connection arrive in order,
 * but connections have no order among each other. Bytes can arrive late, and in pieces that are cut anywhere. A window
 * limits the bytes that are under way. A connection can be reset at any byte, or become silent.
 */
final class SimNetwork {
    /**
     * A side sees its connection through this interface. All calls come from events of the world, and none may act at
     * once.
     */
    interface Socket {
        void onConnected(End end);

        void onRefused(IOException why);

        /** Bytes, or the end, have arrived. */
        void onReadable();

        /** There is room after {@link End#write} took less than all. */
        void onWritable();
    }

    /** Takes connections. */
    interface Listener {
        void onConnection(End end);
    }

    /** Holds the bytes of one direction. All three numbers count from the beginning. */
    private final class Way {
        private byte[] ring = new byte[256];
        private final int window;
        private long written;
        private long arrived;
        private long read;
        private long lastArrival;
        private boolean wantsRoom;
        private boolean finSent;
        private boolean finArrived;

        Way(int window) {
            this.window = window;
        }

        int room() {
            return (int) (window - (written - read));
        }

        void put(ByteBuf from, int bytes) {
            int held = (int) (written - read);
            if (held + bytes > ring.length) {
                byte[] larger = new byte[Math.max(held + bytes, 2 * ring.length)];
                for (int i = 0; i < held; i++) {
                    larger[(int) ((read + i) % larger.length)] = ring[(int) ((read + i) % ring.length)];
                }
                ring = larger;
            }
            int at = (int) (written % ring.length);
            int first = Math.min(bytes, ring.length - at);
            from.readBytes(ring, at, first);
            from.readBytes(ring, 0, bytes - first);
            written += bytes;
        }

        void take(ByteBuf into, int bytes) {
            int at = (int) (read % ring.length);
            int first = Math.min(bytes, ring.length - at);
            into.writeBytes(ring, at, first);
            into.writeBytes(ring, 0, bytes - first);
            read += bytes;
        }
    }

    /** Connects two ends. */
    final class Link {
        final End client;
        final End server;
        private final long latencyNanos;
        private final long jitterNanos;

        /** While this list is there, nothing arrives. It is null while the network works. */
        private @Nullable List<Runnable> dark;

        private Link(Socket from, InetSocketAddress fromAddress, InetSocketAddress toAddress) {
            latencyNanos = world.spread(1_000, MAX_LATENCY_NANOS);
            jitterNanos = world.oneIn(2) ? latencyNanos : 1;
            Way up = new Way(window());
            Way down = new Way(window());
            client = new End(this, fromAddress, toAddress, down, up);
            server = new End(this, toAddress, fromAddress, up, down);
            client.socket = from;
        }

        End other(End end) {
            return end == client ? server : client;
        }

        private long arrival(Way way) {
            way.lastArrival =
                    Math.max(way.lastArrival, world.now() + latencyNanos + world.random.nextLong(jitterNanos));
            return way.lastArrival;
        }

        private void deliver(long at, Runnable what) {
            world.at(at, () -> {
                if (dark == null) {
                    what.run();
                } else {
                    dark.add(what);
                }
            });
        }

        /** Lets nothing more arrive in either direction, and lets nobody know. */
        void darken() {
            if (dark == null) {
                dark = new ArrayList<>();
            }
        }

        /** Lets what was under way arrive now. */
        void lighten() {
            List<Runnable> late = dark;
            dark = null;
            if (late != null) {
                late.forEach(Runnable::run);
            }
        }

        /** Breaks the connection. Both sides learn of it, each in its own time. */
        void reset() {
            deliver(world.now() + world.random.nextLong(latencyNanos), client::broken);
            deliver(world.now() + world.random.nextLong(latencyNanos), server::broken);
        }

        boolean isOver() {
            return (client.closed || client.broken) && (server.closed || server.broken);
        }
    }

    /** Stands for one side's end of a connection. */
    final class End {
        final Link link;
        final InetSocketAddress local;
        final InetSocketAddress remote;
        private final Way in;
        private final Way out;
        private @Nullable Socket socket;
        private boolean closed;
        private boolean broken;

        private End(Link link, InetSocketAddress local, InetSocketAddress remote, Way in, Way out) {
            this.link = link;
            this.local = local;
            this.remote = remote;
            this.in = in;
            this.out = out;
        }

        void socket(Socket owner) {
            socket = owner;
        }

        /** Returns whether a read would return bytes, return the end, or say that the connection is broken. */
        boolean isReadable() {
            return broken || in.arrived > in.read || in.finArrived;
        }

        boolean isBroken() {
            return broken;
        }

        /** @return how many bytes were read; 0 for none yet, -1 for the end */
        int read(ByteBuf into, int most) throws IOException {
            int bytes = (int) Math.min(most, in.arrived - in.read);
            if (bytes > 0) {
                in.take(into, bytes);
                if (in.wantsRoom && in.room() >= Math.min(in.window, world.spread(1, in.window))) {
                    in.wantsRoom = false;
                    link.deliver(link.arrival(out), link.other(this)::writable);
                }
                return bytes;
            }
            if (broken) {
                throw new IOException("Connection reset by peer");
            }
            return in.finArrived ? -1 : 0;
        }

        /**
         * Takes as many bytes as there is room for, or some fewer. If those are not all, {@link Socket#onWritable}
         * follows.
         */
        int write(ByteBuf from) throws IOException {
            if (broken) {
                throw new IOException("Broken pipe");
            }
            int wanted = from.readableBytes();
            int bytes = Math.min(wanted, out.room());
            if (bytes > 1 && world.oneIn(16)) {
                bytes = 1 + world.random.nextInt(bytes);
            }
            if (bytes > 0) {
                if (world.isLogging()) {
                    world.note(
                            bytes,
                            "%s:%d > %s %d bytes %s",
                            local.getHostString(),
                            link.client.local.getPort(),
                            remote.getHostString(),
                            bytes,
                            ByteBufUtil.hexDump(from, from.readerIndex(), Math.min(bytes, MAX_SHOWN_BYTES)));
                } else {
                    world.note(bytes, "");
                }
                out.put(from, bytes);
                send(bytes);
            }
            if (bytes < wanted) {
                if (out.room() > 0) {
                    world.in(1_000, this::writable);
                } else {
                    out.wantsRoom = true;
                }
            }
            return bytes;
        }

        private void send(int bytes) {
            End to = link.other(this);
            long upTo = out.written;
            if (bytes > 1 && world.oneIn(4)) {
                long cut = upTo - 1 - world.random.nextInt(bytes - 1);
                link.deliver(link.arrival(out), () -> to.arrive(cut));
            }
            link.deliver(link.arrival(out), () -> to.arrive(upTo));
        }

        private void arrive(long upTo) {
            if (broken) {
                return;
            }
            in.arrived = Math.max(in.arrived, upTo);
            if (closed) {
                // nobody reads here any more, so the connection of the sender breaks
                link.deliver(link.arrival(out), link.other(this)::broken);
            } else if (socket != null) {
                socket.onReadable();
            }
        }

        private void writable() {
            if (socket != null && !closed) {
                socket.onWritable();
            }
        }

        private void broken() {
            if (!broken) {
                broken = true;
                if (world.oneIn(2)) {
                    in.arrived = in.read;
                }
                if (socket != null && !closed) {
                    socket.onReadable();
                }
            }
        }

        /**
         * Closes this end. What has been written still arrives, and then the end. If bytes are unread here, the
         * connection is reset instead.
         */
        void close() {
            if (closed) {
                return;
            }
            closed = true;
            End to = link.other(this);
            if (in.arrived > in.read) {
                link.deliver(link.arrival(out), to::broken);
            } else if (!out.finSent) {
                out.finSent = true;
                link.deliver(link.arrival(out), () -> {
                    to.in.finArrived = true;
                    if (to.socket != null && !to.closed) {
                        to.socket.onReadable();
                    }
                });
            }
        }
    }

    /** The log shows at most so many bytes of each write. */
    private static final int MAX_SHOWN_BYTES = 80;

    private static final long MAX_LATENCY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final SimWorld world;
    private final Map<InetSocketAddress, Listener> listeners = new HashMap<>();
    private final List<Link> links = new ArrayList<>();
    private final Set<String> silent = new HashSet<>();
    private final int leastWindow;
    private int ports = 10_000;

    /** @param leastWindow bytes that may be under way on a connection, at least; at most 256 KiB */
    SimNetwork(SimWorld world, int leastWindow) {
        this.world = world;
        this.leastWindow = leastWindow;
    }

    private int window() {
        return (int) world.spread(leastWindow, 256 * 1024);
    }

    void listen(InetSocketAddress address, Listener listener) throws IOException {
        if (listeners.putIfAbsent(address, listener) != null) {
            throw new java.net.BindException("Address already in use");
        }
    }

    void unlisten(InetSocketAddress address) {
        listeners.remove(address);
    }

    void connect(Socket from, String fromHost, InetSocketAddress to) {
        Link link = new Link(from, new InetSocketAddress(fromHost, ports++), to);
        link.deliver(link.arrival(link.client.out), () -> {
            if (silent.contains(to.getHostString())) {
                return;
            }
            Listener listener = listeners.get(to);
            if (listener == null) {
                link.deliver(
                        link.arrival(link.server.out),
                        () -> from.onRefused(new ConnectException("Connection refused: " + to)));
                return;
            }
            links.removeIf(Link::isOver);
            links.add(link);
            listener.onConnection(link.server);
            link.deliver(link.arrival(link.server.out), () -> from.onConnected(link.client));
        });
    }

    /** Returns the connections that at least one side has open. */
    List<Link> links() {
        links.removeIf(Link::isOver);
        return links;
    }

    /** Makes a host lose its power. It answers nobody, and knows none of its connections when it is back. */
    void silence(String host) {
        silent.add(host);
        ends(host).forEach(end -> {
            end.closed = true;
            end.link.darken();
        });
        forgetListeners(host);
    }

    /** Ends a process but not its host, so that the connections of the process are reset. */
    void reset(String host) {
        ends(host).forEach(end -> {
            end.link.reset();
            end.closed = true;
        });
        forgetListeners(host);
    }

    void unsilence(String host) {
        if (silent.remove(host)) {
            ends(host).forEach(end -> end.link.lighten());
        }
    }

    boolean isSilent(String host) {
        return silent.contains(host);
    }

    private List<End> ends(String host) {
        List<End> found = new ArrayList<>();
        for (Link link : links) {
            for (End end : new End[] {link.client, link.server}) {
                if (end.local.getHostString().equals(host)) {
                    found.add(end);
                }
            }
        }
        return found;
    }

    private void forgetListeners(String host) {
        listeners.keySet().removeIf(address -> address.getHostString().equals(host));
    }
}
