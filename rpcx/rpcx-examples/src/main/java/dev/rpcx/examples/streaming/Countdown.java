package dev.rpcx.examples.streaming;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.stream.IntStream;

/** Gets several items in one call. {@link Thermometers} also sends them to the server, and both ways at once. */
public final class Countdown {
    @RPCXServer("rocket")
    static class Rocket {
        @Method("countdown")
        Flow.Publisher<Integer> countdown(int from) {
            return Publishers.of(IntStream.rangeClosed(0, from).mapToObj(i -> from - i));
        }
    }

    @RPCXClient(remoteServerName = "rocket")
    interface RocketClient {
        @Method("countdown")
        Flow.Publisher<Integer> countdown(int from);
    }

    /** Prints the items, asks for one more after each, and completes at the end. */
    private static final class Printer extends CompletableFuture<Void> implements Flow.Subscriber<Integer> {
        private Flow.Subscription subscription;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(1);
        }

        @Override
        public void onNext(Integer item) {
            System.out.println(item);
            subscription.request(1);
        }

        @Override
        public void onError(Throwable thrown) {
            completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            complete(null);
        }
    }

    private Countdown() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Rocket())).start();
                Client client = Client.standard()) {
            RocketClient rocket = client.create(RocketClient.class, "127.0.0.1", server.port());
            Printer printer = new Printer();
            rocket.countdown(2).subscribe(printer);
            printer.join();
        }
    }
}
