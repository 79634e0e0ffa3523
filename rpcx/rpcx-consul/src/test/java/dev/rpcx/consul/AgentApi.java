package dev.rpcx.consul;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * Simulates a Consul agent over HTTP. It answers as Consul's documentation says for the health endpoint, for blocking
 * queries, and for the services and checks of an agent. No Consul runs in the tests, since no package offers it.
 */
final class AgentApi implements AutoCloseable {
    private static final Pattern INDEX = Pattern.compile("index=(\\d+)");

    /** Maps each id to the entry as it was registered. */
    private final Map<String, JsonNode> services = new TreeMap<>();

    private final ExecutorService threads = Executors.newCachedThreadPool();
    final ConcurrentLinkedQueue<String> asked = new ConcurrentLinkedQueue<>();
    private HttpServer server;
    private long index = 40;
    private long serverStops;
    private int port;
    int signs;

    AgentApi() throws IOException {
        start();
    }

    /** Starts the agent, after {@link #kill} again on the same port. */
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 50);
        port = server.getAddress().getPort();
        server.createContext("/v1/health/service/counted", this::health);
        server.createContext("/v1/agent/", this::agent);
        server.setExecutor(threads);
        server.start();
    }

    URI uri() {
        return URI.create("http://127.0.0.1:" + port);
    }

    void kill() {
        server.stop(0);
        synchronized (this) {
            serverStops++;
            notifyAll();
        }
    }

    /** Makes the agent forget all that it knew. Its index begins again. */
    synchronized void lose(long from) {
        services.clear();
        index = from;
        notifyAll();
    }

    @Override
    public void close() {
        kill();
        threads.shutdownNow();
    }

    private void health(HttpExchange exchange) throws IOException {
        String query = exchange.getRequestURI().getQuery();
        asked.add(query + " " + exchange.getRequestHeaders().getFirst("X-Consul-Token"));
        byte[] answer;
        synchronized (this) {
            Matcher known = INDEX.matcher(query);
            if (known.find()) {
                long seen = Long.parseLong(known.group(1));
                long stops = serverStops;
                long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
                while (index == seen && stops == serverStops && System.nanoTime() < end) {
                    try {
                        TimeUnit.NANOSECONDS.timedWait(this, end - System.nanoTime());
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        exchange.close();
                        return;
                    }
                }
            }
            exchange.getResponseHeaders().set("X-Consul-Index", Long.toString(index));
            answer = ("["
                            + String.join(
                                    ",",
                                    services.values().stream()
                                            .map(AgentApi::entry)
                                            .toList()) + "]")
                    .getBytes(StandardCharsets.UTF_8);
        }
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(200, answer.length);
        exchange.getResponseBody().write(answer);
        exchange.close();
    }

    /** Source: Consul, HTTP API, List Service Instances for Service, sample response. */
    static String entry(JsonNode service) {
        return """
                {"Node":{"ID":"40e4a748-2192-161a-0510-9bf59fe950b5","Node":"foobar","Address":"127.0.0.1","Datacenter":"dc1",\
                "TaggedAddresses":{"lan":"127.0.0.1","wan":"127.0.0.1"},"Meta":{"instance_type":"t2.medium"}},\
                "Service":{"ID":"%s","Service":"counted","Tags":["primary"],"Address":"%s",\
                "TaggedAddresses":{"lan":{"address":"10.1.10.12","port":8000}},"Meta":{"redis_version":"4.0"},"Port":%d,\
                "Weights":{"Passing":%d,"Warning":1},"Namespace":"default"},\
                "Checks":[{"Node":"foobar","CheckID":"serfHealth","Name":"Serf Health Status","Status":"passing","Notes":"",\
                "Output":"","ServiceID":"","ServiceName":"","ServiceTags":[],"Namespace":"default"}]}""".formatted(
                        service.path("ID").asString(),
                        service.path("Address").asString(""),
                        service.path("Port").asInt(),
                        service.path("Weights").path("Passing").asInt());
    }

    private void agent(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        JsonNode body = JsonMapper.shared().readTree(exchange.getRequestBody().readAllBytes());
        int code = 200;
        synchronized (this) {
            String last = path.substring(path.lastIndexOf('/') + 1);
            if (path.endsWith("/service/register")) {
                services.put(body.path("ID").asString(), body);
                index++;
            } else if (path.contains("/service/deregister/")) {
                code = services.remove(last) == null ? 404 : 200;
                index++;
            } else if (path.contains("/check/pass/")) {
                signs++;
                // Consul answers 404 for a check that it does not know
                code = services.containsKey(last.substring("service:".length())) ? 200 : 404;
            }
            notifyAll();
        }
        exchange.sendResponseHeaders(code, -1);
        exchange.close();
    }

    synchronized void put(String id, String address, int port, int weight) {
        services.put(id, JsonMapper.shared().readTree("""
                                {"ID":"%s","Address":"%s","Port":%d,"Weights":{"Passing":%d}}""".formatted(id, address, port, weight)));
        index++;
        notifyAll();
    }

    synchronized JsonNode service(String id) {
        return services.get(id);
    }

    synchronized int size() {
        return services.size();
    }

    synchronized void touch(long to) {
        index = to;
        notifyAll();
    }
}
