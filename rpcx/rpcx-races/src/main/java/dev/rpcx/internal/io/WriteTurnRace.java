package dev.rpcx.internal.io;

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
 * A caller and the event loop write to one socket. Only one of them writes at a time, each sees what the other has
 * done, and an event loop that was refused the turn is woken. Without epoll no caller ever gets the turn, so there is
 * nothing to test.
 */
@JCStressTest
@Outcome(
        id = {"1, 1, 0", "1, 0, 0", "0, 1, 0"},
        expect = Expect.ACCEPTABLE,
        desc = "one after the other, or one alone")
@Outcome(expect = Expect.FORBIDDEN, desc = "two at once, none, or a loop that nobody wakes")
@State
public class WriteTurnRace {
    @SuppressWarnings("NullAway") // it is null without epoll, as in a turn that no caller gets
    private static final CloseWatch.DirectSocket SOCKET = Epoll.isAvailable() ? Socket.newSocketStream()::send : null;

    private static final EmbeddedChannel CHANNEL = new EmbeddedChannel();

    /** Handler of the connection. A turn uses it only to look for its socket, and here the turn has one already. */
    private static final ChannelHandler CONNECTION = new ChannelInboundHandlerAdapter();

    private static final Field FIELD = field("socket");
    private static final Field BUFFER = field("buffer");

    /**
     * Buffer of all turns, to which nothing is written. Allocating one for each turn takes longer than everything else,
     * so the two actors would hardly ever meet.
     */
    private static final ByteBuffer SHARED = ByteBuffer.allocateDirect(16);

    private final WriteTurn turn = new WriteTurn(CHANNEL, CONNECTION);

    /** Number of writes by both actors, counted without any fence of its own. */
    private int writes;

    private int callerTurns;
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
            // this looks as if the turn had found a socket in its channel
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
            writes++;
            callerTurns++;
            isWoken = turn.callerDone();
        }
    }

    @Actor
    public void loop() {
        if (turn.takeForLoop()) {
            writes++;
            loopTurns++;
            turn.loopDone();
        } else {
            isRefused = true;
        }
    }

    @Arbiter
    public void all(III_Result result) {
        result.r1 = callerTurns;
        result.r2 = loopTurns;
        result.r3 = callerTurns + loopTurns - writes + (isRefused && !isWoken ? 1 : 0);
    }
}
