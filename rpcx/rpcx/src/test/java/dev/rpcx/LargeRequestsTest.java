package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what requests make a server hold besides their bytes: objects, replies and refusals. */
@Timeout(120)
class LargeRequestsTest {
    private static final int REPLY_BYTES = 128 << 10;

    @RPCXServer("large")
    static final class Service {
        final AtomicInteger made = new AtomicInteger();

        @Method
        String much(int bytes) {
            made.incrementAndGet();
            return "x".repeat(bytes);
        }
    }

    private static ByteBuf whole(int id, String method, ByteBuf body) {
        ByteBuf all = Unpooled.buffer();
        ByteBuf first = RawPeer.prelude("large", method);
        int head = Wire.REQUEST | Wire.NAMED;
        first.writeBytes(body, Math.min(16_000, body.readableBytes()));
        while (true) {
            all.writeBytes(RawPeer.frame(body.isReadable() ? head | Wire.MORE : head, id, first));
            if (!body.isReadable()) {
                return all;
            }
            head = Wire.PART;
            first = body.readSlice(Math.min(16_000, body.readableBytes()));
        }
    }

    @Test
    void aCallerThatDoesNotReadItsRepliesHasNoMoreOfThemMade() throws Exception {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .build()
                .start();
        int calls = 1000;
        try (RawPeer raw = new RawPeer(server.port())) {
            raw.send(RawPeer.preface());
            raw.readPreface();
            ByteBuf all = Unpooled.buffer();
            for (int i = 0; i < calls; i++) {
                ByteBuf argument = Unpooled.buffer().writeByte(1 << 3);
                Varint.write(argument, REPLY_BYTES);
                all.writeBytes(whole(1 << 16 | i, "much", argument));
            }
            all.writeBytes(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
            raw.send(all);
            // the number stands still when two looks in a row find the same
            int[] before = {-1};
            await().pollInterval(java.time.Duration.ofMillis(300)).until(() -> {
                int now = service.made.get();
                boolean isSame = now > 0 && now == before[0];
                before[0] = now;
                return isSame;
            });
            assertThat(service.made.get()).isLessThan(calls / 4);
            // all calls are answered when the peer reads
            int replies = 0;
            int errors = 0;
            while (replies + errors < calls) {
                RawPeer.Frame frame = raw.readAnswer();
                if (frame.type() == Wire.ERROR) {
                    errors++;
                } else if ((frame.type() == Wire.REPLY || frame.type() == Wire.PART)
                        && (frame.head() & Wire.MORE) == 0) {
                    replies++;
                }
            }
            assertThat(errors).isZero();
            assertThat(service.made.get()).isEqualTo(calls);
            await().untilAsserted(
                            () -> assertThat(server.core().ledger().audit()).isEmpty());
        } finally {
            server.stop(java.time.Duration.ofMillis(200));
        }
    }

    @Test
    void refusalsCostWhoeverDoesNotReadThemLittleMoreThanItsRequests() throws Exception {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .build()
                .start();
        try (RawPeer raw = new RawPeer(server.port())) {
            raw.send(RawPeer.preface());
            raw.readPreface();
            int calls = 5000;
            ByteBuf all = Unpooled.buffer();
            for (int i = 0; i < calls; i++) {
                all.writeBytes(RawPeer.frame(
                        Wire.REQUEST, (1 + i) << 16 | 1, Unpooled.buffer().writeByte(77)));
            }
            raw.send(all);
            int bytes = 0;
            for (int i = 0; i < calls; i++) {
                RawPeer.Frame frame = raw.readAnswer();
                assertThat(frame.type()).isEqualTo(Wire.ERROR);
                RPCXException error = WireError.read(Unpooled.wrappedBuffer(frame.payload()));
                assertThat(error.code()).isEqualTo(RPCXException.Code.NOT_FOUND);
                assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                bytes += frame.payload().length;
            }
            assertThat(bytes).isLessThan(3 * all.readableBytes());
        } finally {
            server.stop(java.time.Duration.ofMillis(200));
        }
    }
}
