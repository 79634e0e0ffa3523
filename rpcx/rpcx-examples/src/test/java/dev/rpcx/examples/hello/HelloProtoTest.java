package dev.rpcx.examples.hello;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Client;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.examples.RawCaller;
import dev.rpcx.examples.Wiretap;
import dev.rpcx.exported.hello.HelloReply;
import dev.rpcx.exported.hello.HelloRequest;
import org.junit.jupiter.api.Test;

class HelloProtoTest {
    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        byte[] request = HelloRequest.newBuilder().setName("Wörld").build().toByteArray();
        byte[] reply = HelloReply.newBuilder().setValue("Hello Wörld").build().toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new HelloWorld.Greetings())).start();
                Wiretap tap = new Wiretap(server.port());
                Client client = Client.standard();
                RawCaller raw = new RawCaller(server.port())) {
            assertThat(client.create(HelloWorld.Greeter.class, "127.0.0.1", tap.port())
                            .hello("Wörld"))
                    .isEqualTo("Hello Wörld");
            assertThat(tap.sent()).containsExactly(request);
            assertThat(tap.received()).containsExactly(reply);
            assertThat(raw.call("greeter", "hello", HelloRequest.parseFrom(request)))
                    .isEqualTo(reply);
        }
    }
}
