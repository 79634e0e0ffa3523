package dev.parley.transport.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import dev.parley.transport.contract.Answering;
import dev.parley.transport.contract.Door;
import dev.parley.transport.contract.TransportContract;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class RpcxClassicContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new RpcxTransport(RpcxWire.CLASSIC);
    }

    @Test
    void theWireIsThePapers() throws IOException {
        Location at = freeLocation("m2");
        try (var server =
                        transport().serve("m2", Messages.CONTRACT, at, new Answering((operation, request) -> request));
                Door door = new Door(at);
                Neighbour neighbour = transport().connect("m1", Messages.CONTRACT, door.at())) {
            assertThat(server).isNotNull();
            var hello = new TestModelOnlyText("HelloWorld");
            assertThat(neighbour.call(Messages.ONLY_TEXT, hello, Duration.ofSeconds(20)))
                    .isEqualTo(hello);
            byte[] first = door.first();
            assertThat(ByteBuffer.wrap(first).getInt())
                    .as("a length in four bytes, high byte first, and not the native wire's preface")
                    .isBetween(1, 1_000);
            assertThat(new String(first, StandardCharsets.ISO_8859_1)).contains("messages", "onlyText");
        }
    }
}
