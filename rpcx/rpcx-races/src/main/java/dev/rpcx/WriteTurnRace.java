package dev.rpcx;

import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.unix.Socket;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * A caller and the event loop write to one socket: one at a time, each sees what the other has done, and a loop that is
 * refused is woken. Where there is no epoll nothing is lent, and this has nothing to try.
 */
@JCStressTest
@Outcome(
        id = {"1, 1, 0", "1, 0, 0", "0, 1, 0"},
        expect = Expect.ACCEPTABLE,
        desc = "one after the other, or one alone")
@Outcome(expect = Expect.FORBIDDEN, desc = "two at once, none, or a loop that nobody wakes")
@State
public class WriteTurnRace {
    @SuppressWarnings("NullAway") // as a turn has it that lends nothing
    private static final Socket SOCKET = Epoll.isAvailable() ? Socket.newSocketStream() : null;

    private static final EmbeddedChannel CHANNEL = new EmbeddedChannel();

    /** A turn asks for it where it looks for a socket, and here it has one. */
    private static final ChannelHandler CONNECTION = new ChannelInboundHandlerAdapter();

    private static final Field FIELD = field("socket");
    private static final Field BUFFER = field("buffer");

    /** Nothing is written to it. To make one takes longer than all the rest, so that two would hardly meet. */
    private static final ByteBuffer SHARED = ByteBuffer.allocateDirect(16);

    private final WriteTurn turn = new WriteTurn(CHANNEL, CONNECTION);

    /** Without any fence of its own. */
    private int written;

    private int turns;
    private int loopTurns;
    private boolean isRefused;
    private boolean isWoken;

    private static Field field(String name) {
        try {
            Field field = WriteTurn.class.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    public WriteTurnRace() {
        try {
            // as if it had found one in its channel
            FIELD.set(turn, SOCKET);
            BUFFER.set(turn, SHARED);
        } catch (IllegalAccessException e) {
            throw new AssertionError(e);
        }
        turn.loopDone();
    }

    @Actor
    public void caller() {
        if (turn.takeForCaller()) {
            written++;
            turns++;
            isWoken = turn.callerDone();
        }
    }

    @Actor
    public void loop() {
        if (turn.takeForLoop()) {
            written++;
            loopTurns++;
            turn.loopDone();
        } else {
            isRefused = true;
        }
    }

    @Arbiter
    public void all(III_Result result) {
        result.r1 = turns;
        result.r2 = loopTurns;
        result.r3 = turns + loopTurns - written + (isRefused && !isWoken ? 1 : 0);
    }
}
