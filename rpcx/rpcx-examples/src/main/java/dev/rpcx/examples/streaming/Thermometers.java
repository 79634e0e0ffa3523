package dev.rpcx.examples.streaming;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;

/**
 * Sends many items in one call: from the server, to the server, and both ways at once. Neither side sends more than the
 * other has requested.
 */
public final class Thermometers {
    /** One item of a stream. */
    record Reading(int minute, double celsius) {}

    @RPCXServer("thermometers")
    static class Station {
        /** Streams from the server. The subscriber says how many items it can take. */
        @Method("readings")
        Flow.Publisher<Reading> readings(int count) {
            return Publishers.of(measured(count));
        }

        /** Streams to the server. The handler may wait for the items, since it runs on a virtual thread. */
        @Method("warmest")
        double warmest(Flow.Publisher<Reading> readings) {
            return Collected.of(readings).join().stream()
                    .mapToDouble(Reading::celsius)
                    .max()
                    .orElse(Double.NaN);
        }

        /** Streams both ways. An answer is sent as soon as its question has arrived. */
        @Method("fahrenheit")
        Flow.Publisher<Double> fahrenheit(Flow.Publisher<Double> celsius) {
            return new Converted(celsius);
        }
    }

    @RPCXClient(remoteServerName = "thermometers")
    interface StationClient {
        @Method("readings")
        Flow.Publisher<Reading> readings(int count);

        @Method("warmest")
        double warmest(Flow.Publisher<Reading> readings);

        @Method("fahrenheit")
        Flow.Publisher<Double> fahrenheit(Flow.Publisher<Double> celsius);
    }

    private static List<Reading> measured(int count) {
        return IntStream.range(0, count)
                .mapToObj(minute -> new Reading(minute, 20 + minute % 7 / 2.0))
                .toList();
    }

    /** Puts what it measures into a queue, and at last an object that is no temperature. */
    private static void measure(BlockingQueue<Double> celsius) {
        celsius.add(0.0);
        celsius.add(100.0);
        celsius.add(Double.NaN);
    }

    /** Passes items on in converted form. What the reader requests is requested from the source. */
    private record Converted(Flow.Publisher<Double> celsius) implements Flow.Publisher<Double> {
        @Override
        public void subscribe(Flow.Subscriber<? super Double> reader) {
            celsius.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    reader.onSubscribe(subscription);
                }

                @Override
                public void onNext(Double degrees) {
                    reader.onNext(degrees * 9 / 5 + 32);
                }

                @Override
                public void onError(Throwable thrown) {
                    reader.onError(thrown);
                }

                @Override
                public void onComplete() {
                    reader.onComplete();
                }
            });
        }
    }

    /** Requests ten items at a time, and completes with all of them. */
    static final class Collected<T> extends CompletableFuture<List<T>> implements Flow.Subscriber<T> {
        private static final int AT_A_TIME = 10;

        private final List<T> items = new ArrayList<>();
        private Flow.Subscription subscription;

        static <T> CompletableFuture<List<T>> of(Flow.Publisher<T> publisher) {
            Collected<T> collected = new Collected<>();
            publisher.subscribe(collected);
            return collected;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(AT_A_TIME);
        }

        @Override
        public void onNext(T item) {
            items.add(item);
            if (items.size() % AT_A_TIME == 0) {
                subscription.request(AT_A_TIME);
            }
        }

        @Override
        public void onError(Throwable thrown) {
            completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            complete(items);
        }
    }

    private Thermometers() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Station())).start();
                Client client = Client.standard()) {
            StationClient station = client.create(StationClient.class, "127.0.0.1", server.port());
            List<Reading> readings = Collected.of(station.readings(1000)).join();
            System.out.println(readings.size() + " readings, the last at minute "
                    + readings.get(readings.size() - 1).minute());
            System.out.println("warmest " + station.warmest(Publishers.of(measured(1000))));
            BlockingQueue<Double> celsius = new LinkedBlockingQueue<>();
            CompletableFuture<Void> measured = CompletableFuture.runAsync(() -> measure(celsius));
            Flow.Publisher<Double> degrees = Publishers.of(celsius, item -> item.isNaN());
            System.out.println(
                    "in Fahrenheit " + Collected.of(station.fahrenheit(degrees)).join());
            measured.join();
        }
    }
}
