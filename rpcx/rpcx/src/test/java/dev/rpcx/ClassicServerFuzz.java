package dev.rpcx;

import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Fuzzes a server that also serves the classic wire. The input decides what one peer does. The class is public, since
 * Jazzer requires it.
 */
public final class ClassicServerFuzz {
    private static final int STEPS = 7;
    private static final String[] METHODS = {"echo", "inline", "thing", "large", "hang", "error", "note", "brings"};

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
    private final ByteBuf said = Unpooled.buffer();
    private final Map<Long, Integer> begun = new HashMap<>();
    private final EmbeddedChannel channel = platform.accept();
    private boolean isRaw;

    private ClassicServerFuzz() {}

    /** Jazzer calls this method with each input. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        new ClassicServerFuzz().run(new FuzzInput(bytes));
    }

    private void run(FuzzInput in) {
        // whatever the input is, the peer begins with the classic wire
        send(new byte[1]);
        send(new byte[] {0, 0, 0});
        while (in.hasMore()) {
            step(in);
            platform.settle(channel);
            look();
        }
        platform.quiet(service, channel);
        look();
        platform.end(server, service, channel);
    }

    private void step(FuzzInput in) {
        int step = in.next();
        int which = step / STEPS;
        switch (step % STEPS) {
            case 0 -> {
                isRaw = true;
                send(in.take(in.next()));
            }
            case 1 -> {
                isRaw = true;
                byte[] frame = in.take(in.next());
                send(ByteBufUtil.getBytes(
                        Unpooled.buffer().writeInt(frame.length).writeBytes(frame)));
            }
            case 2 -> request(in, which);
            case 3 -> platform.handle(which);
            case 4 -> service.end(which);
            case 5 -> platform.pass(channel, 1L << which, TimeUnit.MILLISECONDS);
            default -> platform.reads(channel, which % 2 == 0);
        }
    }

    private void request(FuzzInput in, int which) {
        long id = in.next();
        int more = in.next() * 64;
        byte[] value = in.take(in.next());
        byte[] whole = java.util.Arrays.copyOf(value, value.length + more);
        ByteBuf request = ClassicRequests.of(
                id, "fuzz", METHODS[which % METHODS.length], java.util.List.of("any"), java.util.List.of(whole));
        if (channel.isActive() && channel.config().isAutoRead()) {
            begun.merge(id, 1, Integer::sum);
            send(ByteBufUtil.getBytes(request));
        }
    }

    private void send(byte[] bytes) {
        platform.read(channel, bytes, 0, bytes.length);
    }

    /** Checks that the server sends whole replies, and for each id no more replies than it had requests. */
    private void look() {
        said.writeBytes(HandPlatform.written(channel));
        while (said.readableBytes() >= ClassicFrames.LENGTH_BYTES
                && said.readableBytes() - ClassicFrames.LENGTH_BYTES >= said.getInt(said.readerIndex())) {
            long id = ClassicWire.readReply(said.readSlice(said.readInt())).id();
            if (id != 0 && !isRaw && begun.merge(id, -1, Integer::sum) < 0) {
                throw new AssertionError("one reply too many to call " + id);
            }
        }
    }
}
