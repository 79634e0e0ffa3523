package dev.parley.transport.rpcx;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class RpcxContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new RpcxTransport(RpcxWire.NATIVE);
    }
}
