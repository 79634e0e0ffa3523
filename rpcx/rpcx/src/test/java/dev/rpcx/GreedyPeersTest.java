package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Peers that take all that a server has to give, and what is left for the others. */
@Timeout(60)
class GreedyPeersTest {
    private static final int GENERATION = 1 << 16;

    @RPCXServer("greedy")
    static final class Service {
        @Method
        java.util.concurrent.Flow.Publisher<String> items(String of) {
            return new StreamsTest.Made<>(1, i -> of);
        }
    }

    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .port(0)
            .build()
            .start();

    @AfterEach
    void stop() {
        server.close();
    }

    /** Takes so much of this that not even the smallest amount is left. */
    private static List<Charge> takeAll(Server of, Resource kind) {
        List<Charge> taken = new ArrayList<>();
        for (long part = of.ledger().most(kind); part > 0; ) {
            Charge charge = Objects.requireNonNull(of.ledger().open(null)).charge(kind);
            if (charge.add(part)) {
                taken.add(charge);
            } else {
                part /= 2;
            }
        }
        return taken;
    }

    private static ByteBuf credit(int id) {
        ByteBuf items = Unpooled.buffer();
        Varint.write(items, Long.MAX_VALUE);
        return RawPeer.frame(Wire.CREDIT, id, items);
    }

    @Test
    void aStreamWhoseErrorCannotBeChargedEndsOnceAndItsConnectionGoesOn() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.readPreface();
            List<Charge> taken = takeAll(server, Resource.ITEM_BYTES_OUT);
            int id = GENERATION;
            peer.send(Unpooled.wrappedBuffer(RawPeer.request(id, "greedy", "items", "one"), credit(id)));
            RawPeer.Frame end = peer.readAnswer();
            assertThat(end.type()).isEqualTo(Wire.ERROR);
            assertThat(end.id()).isEqualTo(id);
            assertThat(WireError.read(Unpooled.wrappedBuffer(end.payload())).code())
                    .isEqualTo(RPCXException.Code.OVERLOADED);

            peer.send(Unpooled.wrappedBuffer(
                    RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER),
                    RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER)));
            RawPeer.Frame answer = peer.readAnswer();
            assertThat(answer.type()).isEqualTo(Wire.PONG);
            taken.forEach(Charge::release);
        }
        await().untilAsserted(() ->
                assertThat(server.ledger().held(Resource.ITEM_BYTES_OUT)).isZero());
    }
}
