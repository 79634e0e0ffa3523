module shop {
    requires dev.rpcx;

    opens shop to
            dev.rpcx;
}
