package dev.parley.transport.rpcx;

import dev.parley.model.Technology;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
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
        dev.rpcx.Server server = dev.rpcx.Server.builder(RegistryServer.registry(service(contract, handler)))
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

    private static Object service(Contract contract, Handler handler) {
        if (contract.name().equals(Messages.CONTRACT.name())) {
            return new MessagesService(handler);
        }
        throw unknown(contract);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        if (contract.name().equals(Messages.CONTRACT.name())) {
            return new MessagesNeighbour(to);
        }
        throw unknown(contract);
    }

    private static CallException unknown(Contract contract) {
        return new CallException(CallException.Code.NOT_FOUND, "no RPCX interface for the contract " + contract.name());
    }
}
