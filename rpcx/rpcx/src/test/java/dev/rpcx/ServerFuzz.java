package dev.rpcx;

import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.concurrent.TimeUnit;

/**
 * Fuzzes a server. The input decides what one peer sends, which can be bytes and frames of any kind, and whether it
 * reads. The input also decides when handlers run, and when time passes. The class is public, since Jazzer requires it.
 */
public final class ServerFuzz {
    private static final int STEPS = 8;

    private final FuzzService service = new FuzzService();
    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(platform)
            .classic(true)
            .maxCalls(8)
            .maxRunning(6)
            .maxMessageBytes(64 * 1024)
            .build()
            .start();
    private final FrameLog sent = new FrameLog();
    private final FrameLog received = new FrameLog();
    private EmbeddedChannel channel = platform.accept();

    private ServerFuzz() {}

    /** Jazzer calls this method. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        new ServerFuzz().run(new FuzzInput(bytes));
    }

    private void run(FuzzInput in) {
        while (in.hasMore()) {
            step(in);
            look();
        }
        end();
    }

    private void step(FuzzInput in) {
        int step = in.next();
        switch (step % STEPS) {
            case 0 -> send(in.take(in.next()));
            case 1 -> send(ByteBufUtil.getBytes(in.frame()));
            case 2 -> {
                // this sends a frame as case 1 does, but many times, so that a short input can send much
                byte[] frame = ByteBufUtil.getBytes(in.frame());
                for (int i = step / STEPS; i >= 0; i--) {
                    send(frame);
                }
            }
            case 3 -> platform.handle(step / STEPS);
            case 4 -> service.end(step / STEPS);
            case 5 -> platform.pass(channel, 1L << step / STEPS, TimeUnit.MILLISECONDS);
            case 6 -> platform.reads(channel, step / STEPS % 2 == 0);
            default -> send(ByteBufUtil.getBytes(RawPeer.preface()));
        }
        platform.settle(channel);
    }

    private void send(byte[] bytes) {
        if (channel.isActive() && channel.config().isAutoRead()) {
            sent.add(bytes, 0, bytes.length);
            platform.read(channel, bytes, 0, bytes.length);
        }
    }

    /** Asserts that what the server says is well formed, and that no call ends more often than it began. */
    private void look() {
        byte[] written = HandPlatform.written(channel);
        if (sent.isBroken()) {
            return;
        }
        received.add(written, 0, written.length);
        if (received.isBroken()) {
            throw new AssertionError("what the server said is no frame");
        }
        received.finals.forEach((id, count) -> {
            if (id != 0 && count > sent.begun.getOrDefault(id, 0)) {
                throw new AssertionError(count + " ends of call " + Integer.toHexString(id));
            }
        });
    }

    private void end() {
        platform.quiet(service, channel);
        look();
        if (channel.isActive() && sent.isBetweenFrames()) {
            answersPing();
        }
        platform.end(server, service, channel);
    }

    /** Asserts that an open connection still works. A connection that has been asked too often is closed instead. */
    private void answersPing() {
        send(ByteBufUtil.getBytes(RawPeer.frame(Wire.PING, 7, io.netty.buffer.Unpooled.EMPTY_BUFFER)));
        int before = received.frames.size();
        look();
        boolean answered = received.frames.subList(before, received.frames.size()).stream()
                .anyMatch(frame -> frame.type() == Wire.PONG && frame.id() == 7);
        if (channel.isActive() && !answered) {
            throw new AssertionError("a ping without an answer");
        }
    }
}
