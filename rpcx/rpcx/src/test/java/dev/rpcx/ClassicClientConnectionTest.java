package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** The paper's client without a network. */
class ClassicClientConnectionTest {
    private final ClassicClientConnection connection;
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final AtomicLong id = new AtomicLong();

    ClassicClientConnectionTest() {
        connection = new ClassicClientConnection(channel, "there");
        channel.pipeline().addLast(connection);
    }

    private RPCXFuture<byte[]> send(long timeNanos) {
        RPCXFuture<byte[]> reply = connection.send(
                taken -> {
                    id.set(taken);
                    return ClassicWire.request(taken, "service", "method", List.of(), List.of());
                },
                channel.eventLoop().ticker().nanoTime() + timeNanos);
        channel.<ByteBuf>readOutbound().release();
        return reply;
    }

    @Test
    void whatWasAnsweredIsNotKeptUntilItsTimeIsOver() throws Exception {
        RPCXFuture<byte[]> reply = send(TimeUnit.HOURS.toNanos(1));
        assertThat(channel.runScheduledPendingTasks()).isPositive();
        channel.writeInbound(ClassicWire.reply(id.get(), new byte[] {7}, null));
        assertThat(reply.get()).containsExactly(7);
        // no timer is left
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
        channel.finishAndReleaseAll();
    }

    @Test
    void whatIsNotAnsweredInTimeFails() {
        RPCXFuture<byte[]> reply = send(0);
        channel.runScheduledPendingTasks();
        assertThatThrownBy(reply::get)
                .isInstanceOf(ExecutionException.class)
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED));
        channel.finishAndReleaseAll();
    }
}
