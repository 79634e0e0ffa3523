package dev.parley.transport.resth2;

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
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class RestH2ContractTest extends TransportContract {
    /** Source: RFC 9113, section 3.4. */
    private static final String PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    /** Offset of a frame's type, behind its length. Source: RFC 9113, section 4.1. */
    private static final int FRAME_TYPE = 3;

    /** Source: RFC 9113, section 6.5. */
    private static final byte SETTINGS = 4;

    private final Transport rest = new RestH2Transport(HttpVersion.HTTP_2);

    @Override
    protected Transport transport() {
        return rest;
    }

    /**
     * {@code io.helidon.webserver.LoomServer} 4.3.1 makes this daemon for each server and never cancels it; a service
     * has one server.
     */
    @Override
    protected boolean isKeptByItsLibrary(String leftover) {
        return leftover.equals("thread helidon-idle-connection-timer");
    }

    @Test
    void whatIsSentAreFramesOfHttp2() throws IOException {
        Location at = freeLocation("m2");
        try (var server = rest.serve("m2", Messages.CONTRACT, at, new Answering((operation, request) -> request));
                Door door = new Door(at);
                Neighbour neighbour = rest.connect("m1", Messages.CONTRACT, door.at())) {
            assertThat(server).isNotNull();
            var hello = new TestModelOnlyText("HelloWorld");
            assertThat(neighbour.call(Messages.ONLY_TEXT, hello, Duration.ofSeconds(20)))
                    .isEqualTo(hello);

            byte[] sent = door.first();
            assertThat(new String(sent, 0, PREFACE.length(), StandardCharsets.US_ASCII))
                    .as("no upgrade: the client knows beforehand")
                    .isEqualTo(PREFACE);
            assertThat(sent[PREFACE.length() + FRAME_TYPE])
                    .as("the first frame")
                    .isEqualTo(SETTINGS);
            byte[] answered = door.firstBack();
            assertThat(answered[FRAME_TYPE]).as("the server's first frame").isEqualTo(SETTINGS);
        }
    }
}
