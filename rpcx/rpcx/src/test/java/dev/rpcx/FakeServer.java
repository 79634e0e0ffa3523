package dev.rpcx;

import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import java.io.IOException;
import java.util.Collection;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A server that is controlled byte by byte. It accepts every connection, greets it, and does with each request what a
 * test says.
 */
final class FakeServer implements AutoCloseable {
    /** Deals with a request, on the thread of its connection. */
    interface Answer {
        void to(RawPeer.Frame request, RawServer.Peer peer) throws IOException;
    }

    final AtomicInteger accepted = new AtomicInteger();
    final AtomicInteger open = new AtomicInteger();
    final AtomicInteger requests = new AtomicInteger();

    /** This is counted down once a client knows what this server publishes. */
    final CountDownLatch known = new CountDownLatch(1);

    private final RawServer server = new RawServer();
    private final Settings settings;
    private final ByteBuf dictionary;
    private final Answer answer;
    private final Collection<RawServer.Peer> peers = new ConcurrentLinkedQueue<>();

    FakeServer(Settings settings, ByteBuf dictionary, Answer answer) throws IOException {
        this.settings = settings;
        this.dictionary = dictionary;
        this.answer = answer;
        start(this::accept);
    }

    Endpoint endpoint() {
        return new Endpoint("127.0.0.1", server.port());
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(task, "fake server");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                RawServer.Peer peer = server.accept(settings, dictionary);
                peers.add(peer);
                accepted.incrementAndGet();
                open.incrementAndGet();
                start(() -> serve(peer));
            }
        } catch (IOException closed) {
            // the test is over
        }
    }

    private void serve(RawServer.Peer peer) {
        try (peer) {
            // the client answers this once it has read everything before it
            peer.send(Wire.PING, 1);
            while (true) {
                RawPeer.Frame frame = peer.read();
                if (frame.type() == Wire.PONG) {
                    known.countDown();
                } else if (frame.type() == Wire.PING) {
                    peer.send(Wire.PONG, frame.id());
                } else if (frame.type() == Wire.REQUEST) {
                    requests.incrementAndGet();
                    answer.to(frame, peer);
                }
            }
        } catch (IOException gone) {
            // the client has ended the connection
        } finally {
            open.decrementAndGet();
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (RawServer.Peer peer : peers) {
            peer.close();
        }
    }
}
