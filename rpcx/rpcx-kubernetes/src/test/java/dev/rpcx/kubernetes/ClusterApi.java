package dev.rpcx.kubernetes;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Simulates the Kubernetes API over HTTP, for listing and watching EndpointSlices as the API reference describes it. A
 * list has a version, and a watch sends the changes of later versions as one document after the other. There are also
 * bookmarks, and the status 410 for versions that are forgotten.
 */
final class ClusterApi implements AutoCloseable {
    private static final String END = "";

    private final Map<String, String> slices = new TreeMap<>();
    private final List<BlockingQueue<String>> watchers = new CopyOnWriteArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    final ConcurrentLinkedQueue<String> asked = new ConcurrentLinkedQueue<>();
    private HttpServer server;
    private int version = 10_245;
    private int port;

    ClusterApi() throws IOException {
        start();
    }

    /** Starts the server, after {@link #kill} again on the same port. */
    void start() throws IOException {
        start(HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 50));
    }

    ClusterApi(HttpServer prepared) {
        start(prepared);
    }

    private void start(HttpServer prepared) {
        server = prepared;
        server.createContext("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", this::answer);
        server.setExecutor(threads);
        server.start();
        port = server.getAddress().getPort();
    }

    URI uri() {
        return URI.create("http://127.0.0.1:" + port);
    }

    /** Closes the sockets in the middle of whatever they send. */
    void kill() {
        server.stop(0);
        watchers.forEach(watcher -> watcher.add(END));
    }

    @Override
    public void close() {
        kill();
        threads.shutdownNow();
    }

    static String slice(String name, int version, String type, String ports, String endpoints) {
        return """
                {"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"%s","namespace":"shop",\
                "resourceVersion":"%d","labels":{"kubernetes.io/service-name":"counted",\
                "endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"}},"addressType":"%s",\
                "ports":%s,"endpoints":%s}""".formatted(name, version, type, ports, endpoints);
    }

    /** Puts a slice with one pod at a port of its own. */
    synchronized void put(String name, int port, String ready) {
        version++;
        String slice = slice(
                name,
                version,
                "IPv4",
                "[{\"name\":\"rpcx\",\"protocol\":\"TCP\",\"port\":" + port + "}]",
                "[{\"addresses\":[\"127.0.0.1\"],\"conditions\":{\"ready\":" + ready
                        + ",\"serving\":true,\"terminating\":false},\"nodeName\":\"node-1\",\"zone\":\"us-west2-a\"}]");
        String type = slices.put(name, slice) == null ? "ADDED" : "MODIFIED";
        tell(type, slice);
    }

    synchronized void remove(String name) {
        version++;
        String slice = slices.remove(name);
        tell("DELETED", slice.replaceAll("\"resourceVersion\":\"\\d+\"", "\"resourceVersion\":\"" + version + "\""));
    }

    synchronized void bookmark() {
        version++;
        tell("BOOKMARK", """
                {"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"%d"}}""".formatted(version));
    }

    synchronized void expire() {
        tell("ERROR", """
                {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",\
                "message":"too old resource version","reason":"Expired","code":410}""");
    }

    /** Ends all watches, as the server does after timeoutSeconds. */
    void endWatches() {
        watchers.forEach(watcher -> watcher.add(END));
    }

    int watches() {
        return watchers.size();
    }

    /** Removes all slices, and notifies nobody. */
    synchronized void lose() {
        slices.clear();
    }

    private void tell(String type, String object) {
        String event = "{\"type\":\"" + type + "\",\"object\":" + object + "}\n";
        watchers.forEach(watcher -> watcher.add(event));
    }

    private void answer(HttpExchange exchange) throws IOException {
        String query = URLDecoder.decode(exchange.getRequestURI().getRawQuery(), StandardCharsets.UTF_8);
        asked.add(query + " " + exchange.getRequestHeaders().getFirst("Authorization"));
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        if (query.contains("watch=1")) {
            watch(exchange);
            return;
        }
        byte[] list;
        synchronized (this) {
            list = """
                    {"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1",\
                    "metadata":{"resourceVersion":"%d"},"items":[%s]}""".formatted(version, String.join(",", slices.values())).getBytes(StandardCharsets.UTF_8);
        }
        exchange.sendResponseHeaders(200, list.length);
        exchange.getResponseBody().write(list);
        exchange.close();
    }

    private void watch(HttpExchange exchange) throws IOException {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        exchange.sendResponseHeaders(200, 0);
        watchers.add(events);
        try (OutputStream out = exchange.getResponseBody()) {
            out.flush();
            for (String event = events.take(); !event.equals(END); event = events.take()) {
                out.write(event.getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            watchers.remove(events);
        }
    }
}
