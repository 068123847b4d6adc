typedef struct Renamed_tag { int x; } Renamed;
typedef struct Renamed_tag Renamed_again;
typedef int Width;
typedef Width* Width_pointer;
typedef struct Same Same;
struct Same { Width width; };
