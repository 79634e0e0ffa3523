package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Runs attackers in a process of their own. The arguments {@code LOCKED OPEN SECURED} are the three ports of
 * {@link Besieged}. The line {@code begin ATTACK PERCENT} begins an attack with this percentage of its connections. The
 * line {@code end} ends all attacks. Its answer says how many connections were made, how many of these the server
 * ended, how many kB were sent, and how much processor time this process has used so far.
 */
public final class Attackers {
    private final int locked;
    private final int open;
    private final int secured;
    private final List<Swarm> swarms = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();

    private Attackers(int locked, int open, int secured) {
        this.locked = locked;
        this.open = open;
        this.secured = secured;
    }

    /** The numbers that {@code end} answers with. */
    record Deeds(long made, long ended, long sentKilobytes, long cpuMillis) {
        static Deeds parse(String line) {
            String[] all = line.split(" ");
            return new Deeds(
                    Long.parseLong(all[0]), Long.parseLong(all[1]), Long.parseLong(all[2]), Long.parseLong(all[3]));
        }
    }

    public static void main(String[] args) throws IOException {
        Attackers attackers =
                new Attackers(Integer.parseInt(args[0]), Integer.parseInt(args[1]), Integer.parseInt(args[2]));
        System.out.println("ready");
        JvmProcess.answer(line -> {
            String[] words = line.split(" ");
            return words[0].equals("begin")
                    ? attackers.begin(Attack.valueOf(words[1]), Integer.parseInt(words[2]))
                    : attackers.end();
        });
    }

    private String begin(Attack attack, int percent) {
        Swarm swarm = new Swarm(attack, port(attack.shape), percent);
        Thread thread = new Thread(swarm, attack.name());
        swarms.add(swarm);
        threads.add(thread);
        thread.start();
        try {
            swarm.begun.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        return "begun";
    }

    private int port(Attack.Shape shape) {
        if (shape.isSecured()) {
            return secured;
        }
        return shape == Attack.Shape.LOCKED ? locked : open;
    }

    private String end() {
        long made = 0;
        long ended = 0;
        long bytes = 0;
        swarms.forEach(swarm -> swarm.over = true);
        for (int i = 0; i < swarms.size(); i++) {
            try {
                threads.get(i).join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            made += swarms.get(i).made;
            ended += swarms.get(i).ended;
            bytes += swarms.get(i).bytes;
        }
        swarms.clear();
        threads.clear();
        return made + " " + ended + " " + bytes / 1000 + " " + JvmProcess.cpuMillis();
    }

    /** The connections of one attack, driven by one thread that never blocks. */
    private static final class Swarm implements Runnable {
        private static final int MAX_READ_BYTES = 1 << 16;

        private final Attack attack;
        private final int port;
        private final Line[] lines;
        private final ByteBuffer thrownAway = ByteBuffer.allocateDirect(MAX_READ_BYTES);
        private final CountDownLatch begun = new CountDownLatch(1);
        volatile boolean over;
        long made;
        long ended;
        long bytes;

        Swarm(Attack attack, int port, int percent) {
            this.attack = attack;
            this.port = port;
            this.lines = new Line[Math.max(1, attack.connections * percent / 100)];
            for (int i = 0; i < lines.length; i++) {
                // each attack has addresses of its own, as far as there are enough
                lines[i] = new Line((attack.ordinal() * 7 + i * attack.addresses / lines.length) % 250);
            }
        }

        @Override
        public void run() {
            long tick = TimeUnit.SECONDS.toNanos(1) / attack.perSecond;
            long due = System.nanoTime();
            while (!over) {
                for (int i = 0; i < lines.length && !over; i++) {
                    lines[i].step();
                }
                begun.countDown();
                // what could not be done in time is left out, because an attack's rate is only an upper limit
                due = Math.max(due + tick, System.nanoTime());
                for (long left = due - System.nanoTime(); left > 0 && !over; left = due - System.nanoTime()) {
                    LockSupport.parkNanos(Math.min(left, 20_000_000));
                }
            }
            for (Line line : lines) {
                line.close();
            }
        }

        private final class Line {
            private final InetAddress address;
            private @Nullable SocketChannel channel;
            private @Nullable ByteBuffer rest;
            private @Nullable RawTls tls;
            private int round;

            Line(int number) {
                try {
                    address = InetAddress.getByAddress(new byte[] {127, 0, 0, (byte) (2 + number)});
                } catch (java.net.UnknownHostException e) {
                    throw new IllegalStateException(e);
                }
            }

            void step() {
                try {
                    SocketChannel to = channel;
                    if (to == null) {
                        to = channel = connect();
                    }
                    if (to.finishConnect()) {
                        talk(to);
                    }
                } catch (IOException | GeneralSecurityException closed) {
                    ended++;
                    close();
                }
            }

            private SocketChannel connect() throws IOException {
                made++;
                round = 0;
                rest = null;
                tls = attack.shape.isSealed() ? new RawTls() : null;
                SocketChannel to = SocketChannel.open();
                to.configureBlocking(false);
                // a close resets the connection, so that no port stays occupied in TIME_WAIT
                to.socket().setSoLinger(true, 0);
                to.bind(new InetSocketAddress(address, 0));
                to.connect(new InetSocketAddress("127.0.0.1", port));
                return to;
            }

            private void talk(SocketChannel to) throws IOException, GeneralSecurityException {
                if (attack.shape.reads() || tls != null && !tls.isDone()) {
                    read(to);
                }
                ByteBuffer now = rest;
                if (now == null || !now.hasRemaining()) {
                    ByteBuf next = next();
                    if (next == Attack.Ends.HANG_UP) {
                        close();
                        return;
                    }
                    if (next == null) {
                        return;
                    }
                    now = rest = ByteBuffer.wrap(ByteBufUtil.getBytes(next));
                }
                bytes += to.write(now);
            }

            private void read(SocketChannel to) throws IOException, GeneralSecurityException {
                if (to.read(thrownAway.clear()) < 0) {
                    throw new IOException("the end");
                }
                if (tls != null) {
                    ByteBuf finished = tls.read(Unpooled.wrappedBuffer(thrownAway.flip()));
                    if (finished != null) {
                        rest = ByteBuffer.wrap(ByteBufUtil.getBytes(
                                Unpooled.wrappedBuffer(finished, tls.seal(RawTls.DATA, RawPeer.preface()))));
                    }
                }
            }

            private @Nullable ByteBuf next() throws GeneralSecurityException {
                if (tls == null) {
                    return attack.next(round++);
                }
                if (!tls.isDone()) {
                    // the hello is sent once, and from then on the server has to answer
                    return round++ == 0 ? RawTls.plain(RawTls.HANDSHAKE, tls.hello()) : null;
                }
                round = Math.max(round, 1);
                ByteBuf said = attack.next(round++ - 1);
                return said == null || said == Attack.Ends.HANG_UP ? said : Attack.seal(tls, said);
            }

            void close() {
                if (channel != null) {
                    try {
                        channel.close();
                    } catch (IOException gone) {
                        // nothing more can be done for it
                    }
                    channel = null;
                }
            }
        }
    }
}
