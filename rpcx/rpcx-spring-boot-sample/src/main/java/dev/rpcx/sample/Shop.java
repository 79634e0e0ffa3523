package dev.rpcx.sample;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.opentelemetry.CallTracing;
import dev.rpcx.sample.orders.OrdersApplication;
import dev.rpcx.sample.stock.StockApplication;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Starts the stock service and the orders service, each as a process of its own, and places an order. Prints the
 * receipt, and the spans that the order left in both services.
 */
public final class Shop {
    private Shop() {}

    @RPCXClient(remoteServerName = "orders")
    interface OrdersClient {
        @Method
        String order(String article, int count);
    }

    private record Service(Process process, BufferedReader out) implements AutoCloseable {
        static Service start(Class<?> application, String... settings) throws IOException {
            List<String> command = new ArrayList<>(List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-XX:TieredStopAtLevel=1",
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    System.getProperty("java.class.path"),
                    application.getName(),
                    "--spring.main.banner-mode=off",
                    "--logging.level.root=warn",
                    "--rpcx.server.host=127.0.0.1",
                    "--rpcx.server.port=0"));
            command.addAll(List.of(settings));
            Process process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            return new Service(
                    process,
                    new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)));
        }

        /** Reads the lines that the service prints until one begins with {@code begin}, and returns that whole line. */
        String await(String begin) throws IOException {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                if (line.startsWith(begin)) {
                    return line;
                }
            }
            throw new IOException("the service ended before it said: " + begin);
        }

        @Override
        public void close() throws IOException {
            process.destroy();
            try {
                if (!process.waitFor(10, TimeUnit.SECONDS)) {
                    process.destroyForcibly();
                }
            } catch (InterruptedException e) {
                process.destroyForcibly();
                Thread.currentThread().interrupt();
            }
        }
    }

    public static void main(String[] args) throws Exception {
        order().forEach(System.out::println);
        System.exit(0);
    }

    /**
     * Starts both services and places an order.
     *
     * @return the receipt, and the spans of both services
     */
    static List<String> order() throws Exception {
        List<String> lines = new ArrayList<>();
        try (Service stock = Service.start(StockApplication.class)) {
            String address = "127.0.0.1:" + port(stock);
            try (Service orders = Service.start(OrdersApplication.class, "--rpcx.services.stock=" + address);
                    Client client = Client.builder()
                            .interceptor(CallTracing.ofClient(Telemetry.telemetry()))
                            .build()) {
                OrdersClient calls = client.create(OrdersClient.class, "127.0.0.1", port(orders));
                lines.add(calls.order("tea", 2));
                lines.add("stock:  " + stock.await("span"));
                lines.add("orders: " + orders.await("span"));
                lines.add("orders: " + orders.await("span"));
            }
        }
        return lines;
    }

    private static int port(Service service) throws IOException {
        return Integer.parseInt(service.await("serving ").substring("serving ".length()));
    }
}
