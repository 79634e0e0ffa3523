package dev.rpcx;

import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Fuzzes a client. The input decides what one server does: it sends bytes and frames of any kind, also for calls that
 * the client has made meanwhile. The class is public, since Jazzer requires it.
 */
public final class ClientFuzz {
    private static final int STEPS = 9;
    private static final int KINDS = 8;
    private static final int MAX_CALLS = 64;

    private final HandPlatform platform = new HandPlatform();
    private final Client client =
            Client.builder().platform(platform).eventLoops(1).connections(1, 1).build();
    private final FuzzService.Remote remote = client.create(FuzzService.Remote.class, "peer", 1);
    private final FrameLog received = new FrameLog();
    private final List<CompletableFuture<?>> calls = new ArrayList<>();
    private final List<FuzzService.Taker> takers = new ArrayList<>();
    private final EmbeddedChannel channel;

    private ClientFuzz() {
        calls.add(remote.echo("first"));
        channel = platform.opened.get(0);
        platform.settle(channel);
    }

    /** Jazzer calls this method with each input. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        new ClientFuzz().run(new FuzzInput(bytes));
    }

    private void run(FuzzInput in) {
        while (in.hasMore()) {
            step(in);
            platform.settle(channel);
            look();
        }
        end();
    }

    private void step(FuzzInput in) {
        int step = in.next();
        int which = step / STEPS;
        switch (step % STEPS) {
            case 0 -> send(in.take(in.next()));
            case 1 -> send(ByteBufUtil.getBytes(in.frame()));
            case 2 -> answer(in, which);
            case 3 -> tryCall(in, which);
            case 4 -> calls.get(which % calls.size()).cancel(true);
            case 5 -> platform.pass(channel, 1L << which, TimeUnit.MILLISECONDS);
            case 6 -> platform.reads(channel, which % 2 == 0);
            case 7 -> {
                if (!takers.isEmpty()) {
                    FuzzService.Taker taker = takers.get(which % takers.size());
                    if (which % 3 == 0) {
                        taker.cancel();
                    } else {
                        taker.ask();
                    }
                }
            }
            default -> {
                send(ByteBufUtil.getBytes(RawPeer.preface()));
                send(ByteBufUtil.getBytes(dictionary()));
            }
        }
    }

    /** Sends a frame for a call that the client has begun. */
    private void answer(FuzzInput in, int which) {
        ByteBuf frame = in.frame();
        List<FrameLog.Frame> begun = received.frames.stream()
                .filter(sent -> sent.type() == Wire.REQUEST || sent.type() == Wire.NOTICE)
                .toList();
        if (!begun.isEmpty()) {
            // behind the length, which has one byte or two, stands the head, and then the id
            int length = frame.getByte(0) < 0 ? 2 : 1;
            frame.setInt(
                    length + 1,
                    begun.get(begun.size() - 1 - which % begun.size()).id());
        }
        send(ByteBufUtil.getBytes(frame));
    }

    private static ByteBuf dictionary() {
        ByteBuf entries = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        MethodDictionary.write(entries, scratch, "fuzz", "echo", 1, 0, MethodDictionary.UNKNOWN_SHAPE);
        MethodDictionary.write(entries, scratch, "fuzz", "takes", 2, 0, MethodDictionary.UNKNOWN_SHAPE);
        return RawPeer.frame(Wire.DICTIONARY, 0, entries);
    }

    private void tryCall(FuzzInput in, int which) {
        try {
            call(in, which);
        } catch (RPCXException refused) {
            // what cannot be sent on a connection that stands is refused at once
        }
    }

    private void call(FuzzInput in, int which) {
        if (calls.size() + takers.size() > MAX_CALLS) {
            return;
        }
        switch (which % KINDS) {
            case 0 -> calls.add(remote.echo("x".repeat(in.next() * in.next())));
            case 1 -> calls.add(remote.thing(new FuzzService.Thing("n", List.of(1, 2), Map.of(), Optional.of(3L))));
            case 2 -> calls.add(remote.hang(in.next()));
            case 3 -> calls.add(remote.echoHedged("h"));
            case 4 -> remote.note("n");
            case 5 -> take(remote.brings(in.next()), in.next());
            case 6 -> calls.add(remote.takes(new FuzzService.Items(in.next(), in.next() > 200)));
            default -> take(remote.both(new FuzzService.Items(in.next(), in.next() > 200)), in.next());
        }
    }

    private void take(java.util.concurrent.Flow.Publisher<String> items, int batch) {
        FuzzService.Taker taker = new FuzzService.Taker(1 + batch);
        takers.add(taker);
        items.subscribe(taker);
        calls.add(taker.count);
    }

    private void send(byte[] bytes) {
        platform.read(channel, bytes, 0, bytes.length);
    }

    private void look() {
        byte[] written = HandPlatform.written(channel);
        received.add(written, 0, written.length);
        if (received.isBroken()) {
            throw new AssertionError("what the client said is no frame");
        }
    }

    private void end() {
        look();
        platform.end(client, channel, calls);
    }
}
