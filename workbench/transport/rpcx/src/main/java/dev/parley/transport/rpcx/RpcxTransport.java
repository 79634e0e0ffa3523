package dev.parley.transport.rpcx;

import dev.parley.model.Technology;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.rpcx.RPCXException;
import dev.rpcx.RegistryServer;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Interfaces and services with RPCX's annotations, one pair a contract. */
final class RpcxTransport implements Transport {
    /** {@link Server#close} has a second; a part of it is for closing. */
    private static final Duration STOP_TIME = Duration.ofMillis(800);

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", "RPCX native 1 over TCP");
        settings.put("connections", "1 to each neighbour, shared by all callers");
        settings.put("serializer", "Protobuf by RPCX's own codec, from records");
        settings.put("TCP_NODELAY", "on");
        settings.put("client call", "blocking, decoded by the caller; asynchronous for send");
        settings.put("server executor", "a virtual thread a call");
        settings.put("flush", "at once when idle, gathered up to 64 KiB when busy");
        return new Technology(
                "rpcx",
                "RPCX",
                Technology.Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("annotated interface", "annotated service class", "RPCX server and client"),
                "each caller knows its neighbour's address",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        dev.rpcx.Server server = dev.rpcx.Server.builder(
                        RegistryServer.registry(Binding.of(contract).service().apply(handler)))
                .host(at.host())
                .port(at.port())
                .build();
        try {
            server.start();
        } catch (RPCXException e) {
            throw Errors.toCall(e);
        }
        return () -> server.stop(STOP_TIME);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new RpcxNeighbour<>(Binding.of(contract), to);
    }
}
