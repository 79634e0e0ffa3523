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
record RpcxTransport(RpcxWire wire) implements Transport {
    /** {@link Server#close} has a second; a part of it is for closing. */
    private static final Duration STOP_TIME = Duration.ofMillis(800);

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", wire.protocol);
        settings.put("connections", "1 to each neighbour, shared by all callers");
        settings.put("serializer", "Protobuf by RPCX's own codec, from records");
        settings.put("TCP_NODELAY", "on");
        settings.put("client call", "blocking, decoded by the caller; asynchronous for send");
        settings.put("server executor", "a virtual thread a call");
        settings.put("flush", wire.flush);
        return new Technology(
                wire.variant,
                wire.title,
                Technology.Style.SYNCHRONOUS,
                Optional.empty(),
                List.of("annotated interface", "annotated service class", "RPCX server and client"),
                "each caller knows its neighbour's address",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        dev.rpcx.Server server = wire.on(dev.rpcx.Server.builder(
                        RegistryServer.registry(Binding.of(contract).service().apply(handler))))
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
        return new RpcxNeighbour<>(Binding.of(contract), wire.client(), to);
    }
}
