package dev.rpcx.examples.types;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.LocalDate;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Sends a record that has a list, an optional text, a date that may be null, and one of two cases. */
public final class Letters {
    record Letter(
            String text,
            List<String> readers,
            Optional<String> subject,
            @Nullable LocalDate due,
            Way way) {}

    sealed interface Way {}

    record ByPost(String street) implements Way {}

    record ByMail(String address) implements Way {}

    @RPCXServer("post")
    static class Post {
        @Method("deliver")
        String deliver(Letter letter) {
            return letter.readers() + ", subject " + letter.subject().orElse("none") + ", due " + letter.due() + ", "
                    + letter.way();
        }
    }

    @RPCXClient(remoteServerName = "post")
    interface PostClient {
        @Method("deliver")
        String deliver(Letter letter);
    }

    private Letters() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Post())).start();
                Client client = Client.standard()) {
            PostClient post = client.create(PostClient.class, "127.0.0.1", server.port());
            System.out.println(post.deliver(
                    new Letter("Hello", List.of("Ann", "Bob"), Optional.empty(), null, new ByMail("ann@example.com"))));
        }
    }
}
