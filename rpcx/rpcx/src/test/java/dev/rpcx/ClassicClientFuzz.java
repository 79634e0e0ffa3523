package dev.rpcx;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Fuzzes a client of the classic wire. The input decides what the server does. The class is public, since Jazzer
 * requires it.
 */
public final class ClassicClientFuzz {
    private static final int STEPS = 7;
    private static final int MAX_CALLS = 64;

    private final HandPlatform platform = new HandPlatform();
    private final Client client =
            Client.builder().classic().platform(platform).eventLoops(1).build();
    private final FuzzService.Classic remote = client.create(FuzzService.Classic.class, "peer", 1);
    private final List<CompletableFuture<?>> calls = new ArrayList<>();

    /** Ids of the calls that the client has sent. */
    private final List<Long> ids = new ArrayList<>();

    private final ByteBuf said = Unpooled.buffer();
    private final EmbeddedChannel channel;

    private ClassicClientFuzz() {
        calls.add(remote.echo("first"));
        channel = platform.opened.get(0);
        platform.settle(channel);
    }

    /** Jazzer calls this method with each input. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        new ClassicClientFuzz().run(new FuzzInput(bytes));
    }

    private void run(FuzzInput in) {
        while (in.hasMore()) {
            step(in);
            platform.settle(channel);
            look();
        }
        platform.end(client, channel, calls);
    }

    private void step(FuzzInput in) {
        int step = in.next();
        int which = step / STEPS;
        switch (step % STEPS) {
            case 0 -> send(in.take(in.next()));
            case 1 -> {
                byte[] frame = in.take(in.next());
                send(Unpooled.buffer().writeInt(frame.length).writeBytes(frame));
            }
            case 2 -> answer(in, which);
            case 3 -> {
                if (calls.size() < MAX_CALLS) {
                    calls.add(
                            switch (which % 3) {
                                case 0 -> remote.echo("x".repeat(in.next() * in.next()));
                                case 1 ->
                                    remote.thing(new FuzzService.Thing("n", List.of(1), Map.of(), Optional.empty()));
                                default -> remote.hang(in.next());
                            });
                }
            }
            case 4 -> calls.get(which % calls.size()).cancel(true);
            case 5 -> platform.pass(channel, 1L << which, TimeUnit.MILLISECONDS);
            default -> platform.reads(channel, which % 2 == 0);
        }
    }

    private void answer(FuzzInput in, int which) {
        ByteBuf reply = Unpooled.buffer().writeInt(0);
        if (!ids.isEmpty()) {
            ProtoFields.writeNumber(reply, 1, ids.get(which % ids.size()));
        }
        reply.writeBytes(in.take(in.next()));
        send(reply.setInt(0, reply.readableBytes() - ClassicFrames.LENGTH_BYTES));
    }

    private void send(ByteBuf bytes) {
        byte[] copy = new byte[bytes.readableBytes()];
        bytes.readBytes(copy);
        send(copy);
    }

    private void send(byte[] bytes) {
        platform.read(channel, bytes, 0, bytes.length);
    }

    /** Reads what the client has sent, which has to be whole requests, and keeps their ids. */
    private void look() {
        said.writeBytes(HandPlatform.written(channel));
        while (said.readableBytes() >= ClassicFrames.LENGTH_BYTES
                && said.readableBytes() - ClassicFrames.LENGTH_BYTES >= said.getInt(said.readerIndex())) {
            ids.add(ClassicWire.readRequest(said.readSlice(said.readInt())).id());
        }
    }
}
