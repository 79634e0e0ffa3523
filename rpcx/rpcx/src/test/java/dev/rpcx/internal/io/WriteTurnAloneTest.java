package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.unix.Socket;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Tests who has the turn to write to a socket. The test acts as the event loop and also as the thread that writes. */
class WriteTurnAloneTest {
    private static final int BYTES = 10;

    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final WriteTurn turn = new WriteTurn(channel, new ChannelInboundHandlerAdapter());

    /** The socket is connected to nothing, and takes nothing. */
    private final Socket socket = Epoll.isAvailable() ? Socket.newSocketStream() : null;

    private static final class TestMessage implements WriteTurn.Message {
        boolean failsToBeCopied;
        boolean failsBeforeWrite;

        @Override
        public void copyTo(ByteBuffer frame) {
            frame.put(new byte[BYTES]);
            if (failsToBeCopied) {
                throw new IllegalStateException("of this test");
            }
        }

        @Override
        public boolean beforeDirectWrite() {
            if (failsBeforeWrite) {
                throw new IllegalStateException("of this test");
            }
            return true;
        }
    }

    @AfterEach
    void close() throws IOException {
        channel.close();
        if (socket != null) {
            socket.close();
        }
    }

    /** Acts as the loop after its first flush, as if it had found a socket. */
    private void freeForThreads() {
        Assumptions.assumeTrue(socket != null, "threads write to sockets themselves on Linux only");
        FoundSocket.give(turn, socket);
        turn.loopDone();
    }

    private void writeInPart() {
        assertThat(turn.takeForCaller()).isTrue();
        assertThat(turn.fill(new TestMessage())).isTrue();
        assertThat(turn.write()).isFalse();
    }

    @Test
    void whereThereIsNoSocketOfEpollTheLoopAloneWrites() {
        turn.loopDone();
        assertThat(turn.takeForCaller()).isFalse();
        assertThat(turn.takeForLoop()).isTrue();
    }

    @Test
    void aThreadHasABufferAsLongAsTheTurnHasNotEnded() throws Exception {
        freeForThreads();
        assertThat(turn.bufferBytes()).as("nobody has come yet").isZero();
        assertThat(turn.takeForCaller()).isTrue();
        assertThat(turn.callerDone()).isFalse();
        assertThat(turn.bufferBytes()).isEqualTo(WriteTurn.MAX_BYTES);
        turn.end();
        assertThat(turn.bufferBytes()).isZero();
        assertThat(turn.takeForCaller()).isFalse();
    }

    @Test
    void theRestOfAFrameIsThereUntilTheLoopHasIt() throws Exception {
        freeForThreads();
        writeInPart();
        assertThat(turn.takeForLoop()).as("the rest goes first").isFalse();
        ByteBuffer rest = Objects.requireNonNull(turn.rest());
        assertThat(rest.remaining()).isEqualTo(BYTES);
        turn.takeOver();
        assertThat(turn.rest()).isNull();
        assertThat(turn.takeForLoop()).isTrue();
        turn.loopDone();
        assertThat(turn.takeForCaller()).isTrue();
    }

    /** Otherwise the socket's number might soon belong to another connection. */
    @Test
    void behindARestThatIsTheLastOfItsConnectionNobodyWrites() throws Exception {
        freeForThreads();
        writeInPart();
        turn.end();
        assertThat(turn.rest()).as("it is still to leave").isNotNull();
        turn.takeOver();
        assertThat(turn.rest()).isNull();
        assertThat(turn.bufferBytes()).isZero();
        turn.loopDone();
        assertThat(turn.takeForCaller()).isFalse();
        assertThat(turn.takeForLoop()).isTrue();
    }

    @Test
    void ofAMessageThatCannotBeCopiedNothingIsSentAndTheTurnIsFree() throws Exception {
        freeForThreads();
        TestMessage fails = new TestMessage();
        fails.failsToBeCopied = true;
        assertThat(turn.takeForCaller()).isTrue();
        assertThatThrownBy(() -> turn.fill(fails)).hasMessage("of this test");
        writeInPart();
        assertThat(Objects.requireNonNull(turn.rest()).remaining()).isEqualTo(BYTES);
        assertThat(channel.isOpen()).isTrue();
    }

    @Test
    void aThreadThatFailsInTheMidstOfAFrameEndsTheConnectionWithTheLoopsNextLook() throws Exception {
        freeForThreads();
        TestMessage fails = new TestMessage();
        fails.failsBeforeWrite = true;
        assertThat(turn.takeForCaller()).isTrue();
        assertThatThrownBy(() -> turn.fill(fails)).hasMessage("of this test");
        assertThat(turn.takeForCaller()).isFalse();
        assertThat(channel.isOpen()).isTrue();
        assertThat(turn.takeForLoop()).as("what it writes is thrown away").isTrue();
        assertThat(channel.isOpen()).isFalse();
        assertThat(turn.rest()).isNull();
        turn.loopDone();
        assertThat(turn.takeForCaller()).isFalse();
    }
}
