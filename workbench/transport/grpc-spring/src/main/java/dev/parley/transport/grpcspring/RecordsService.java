package dev.parley.transport.grpcspring;

import dev.parley.encoding.protobuf.records.Entries;
import dev.parley.encoding.protobuf.records.Entry;
import dev.parley.encoding.protobuf.records.EntryId;
import dev.parley.encoding.protobuf.records.Nothing;
import dev.parley.encoding.protobuf.records.Photo;
import dev.parley.encoding.protobuf.records.PhotoName;
import dev.parley.encoding.protobuf.records.RecordsGrpc;
import dev.parley.encoding.protobuf.records.StoredPhoto;
import dev.parley.spi.Handler;
import dev.parley.spi.records.Records;
import io.grpc.stub.StreamObserver;
import org.springframework.grpc.server.service.GrpcService;

/** The contract {@code records} as a gRPC service. */
@GrpcService
class RecordsService extends RecordsGrpc.RecordsImplBase {
    private final Answers answers;

    RecordsService(Handler handler) {
        this.answers = new Answers(handler);
    }

    @Override
    public void all(Nothing request, StreamObserver<Entries> observer) {
        answers.unary(Records.ALL, request, observer);
    }

    @Override
    public void add(Entry request, StreamObserver<Entry> observer) {
        answers.unary(Records.ADD, request, observer);
    }

    @Override
    public void edit(Entry request, StreamObserver<Entry> observer) {
        answers.unary(Records.EDIT, request, observer);
    }

    @Override
    public void delete(EntryId request, StreamObserver<EntryId> observer) {
        answers.unary(Records.DELETE, request, observer);
    }

    @Override
    public StreamObserver<Photo> upload(StreamObserver<StoredPhoto> observer) {
        return answers.streamed(Records.UPLOAD, observer);
    }

    @Override
    public void download(PhotoName request, StreamObserver<Photo> observer) {
        answers.unary(Records.DOWNLOAD, request, observer);
    }
}
