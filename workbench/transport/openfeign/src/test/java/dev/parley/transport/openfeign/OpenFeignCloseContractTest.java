package dev.parley.transport.openfeign;

import dev.parley.spi.Transport;
import dev.parley.transport.contract.TransportContract;

class OpenFeignCloseContractTest extends TransportContract {
    @Override
    protected Transport transport() {
        return new OpenFeignTransport(HttpUse.CLOSED);
    }

    @Override
    protected boolean connectsForEachCall() {
        return true;
    }
}
