package dev.rpcx.examples.plain;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.examples.RawCaller;
import dev.rpcx.examples.Wiretap;
import dev.rpcx.exported.plain.HelloReply;
import dev.rpcx.exported.plain.HelloRequest;
import org.junit.jupiter.api.Test;

class PlainProtoTest {
    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        byte[] request = HelloRequest.newBuilder().setName("Ada").build().toByteArray();
        byte[] reply = HelloReply.newBuilder().setValue("Hello Ada").build().toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new GreeterServer.Greetings())).start();
                Wiretap tap = new Wiretap(server.port());
                RawCaller raw = new RawCaller(server.port())) {
            GreeterClient.main(new String[] {"127.0.0.1", String.valueOf(tap.port()), "Ada"});
            assertThat(tap.sent()).containsExactly(request);
            assertThat(tap.received()).containsExactly(reply);
            assertThat(raw.call("greeter", "hello", HelloRequest.parseFrom(request)))
                    .isEqualTo(reply);
        }
    }
}
